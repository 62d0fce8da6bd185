// Drives a control plane through client-go as controllers do. Prints one line per step: "ok NAME" or "failed NAME: why".
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/retry"
)

const namespace = "client-go"

// A step fails when it takes longer: far above what any step needs.
const stepLimit = 60 * time.Second

type clients struct {
	config   *rest.Config
	json     kubernetes.Interface
	protobuf kubernetes.Interface
	dynamic  dynamic.Interface
	metadata metadata.Interface
}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	if err != nil {
		fmt.Println("failed to read the kubeconfig:", err)
		os.Exit(1)
	}
	config.QPS, config.Burst = 2000, 2000
	binary := rest.CopyConfig(config)
	binary.ContentType = runtime.ContentTypeProtobuf
	c := clients{
		config:   config,
		json:     kubernetes.NewForConfigOrDie(config),
		protobuf: kubernetes.NewForConfigOrDie(binary),
		dynamic:  dynamic.NewForConfigOrDie(config),
		metadata: metadata.NewForConfigOrDie(config),
	}
	steps := []struct {
		name string
		run  func(context.Context, clients) error
	}{
		{"namespace", makeNamespace},
		{"typed objects in JSON", func(ctx context.Context, c clients) error { return typed(ctx, c.json, "typed-json") }},
		{"typed objects in protobuf", func(ctx context.Context, c clients) error { return typed(ctx, c.protobuf, "typed-proto") }},
		{"retry on conflict", retryOnConflict},
		{"shared informers in JSON", func(ctx context.Context, c clients) error { return sharedInformers(ctx, c.json, "informed-json") }},
		{"shared informers in protobuf", func(ctx context.Context, c clients) error { return sharedInformers(ctx, c.protobuf, "informed-proto") }},
		{"dynamic informer and REST mapper", dynamicInformer},
		{"metadata client", metadataClient},
		{"pages", pages},
		{"expired watch", expiredWatch},
		{"leader election", leaderElection},
		{"discovery of all preferred resources", preferredResources},
	}
	failed := false
	for _, step := range steps {
		ctx, cancel := context.WithTimeout(context.Background(), stepLimit)
		err := step.run(ctx, c)
		cancel()
		if err != nil {
			failed = true
			fmt.Printf("failed %s: %v\n", step.name, err)
		} else {
			fmt.Printf("ok %s\n", step.name)
		}
	}
	if failed {
		os.Exit(1)
	}
}

func makeNamespace(ctx context.Context, c clients) error {
	_, err := c.json.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	return err
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"made-by": "client-go"}},
		Data:       data,
	}
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.test/main:1"}}},
	}
}

// The whole life of an object, and the errors that controllers branch on.
func typed(ctx context.Context, client kubernetes.Interface, name string) error {
	maps := client.CoreV1().ConfigMaps(namespace)
	made, err := maps.Create(ctx, configMap(name, map[string]string{"a": "1"}), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if made.UID == "" || made.ResourceVersion == "" || made.CreationTimestamp.IsZero() {
		return fmt.Errorf("create left out metadata: %+v", made.ObjectMeta)
	}
	if _, err := maps.Create(ctx, configMap(name, nil), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("a second create: want AlreadyExists, got %v", err)
	}
	stale := made.DeepCopy()
	made.Data["a"] = "2"
	if made, err = maps.Update(ctx, made, metav1.UpdateOptions{}); err != nil {
		return err
	}
	stale.Data["a"] = "3"
	if _, err := maps.Update(ctx, stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		return fmt.Errorf("a stale update: want Conflict, got %v", err)
	}
	patched, err := maps.Patch(ctx, name, types.StrategicMergePatchType, []byte(`{"data":{"b":"4"}}`), metav1.PatchOptions{})
	if err != nil {
		return err
	}
	if patched.Data["a"] != "2" || patched.Data["b"] != "4" {
		return fmt.Errorf("patched to %v", patched.Data)
	}
	same, err := maps.Update(ctx, patched, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	if same.ResourceVersion != patched.ResourceVersion {
		return errors.New("an update without a change got a new resourceVersion")
	}
	if _, err := maps.Get(ctx, name+"-missing", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("get of nothing: want NotFound, got %v", err)
	}
	if _, err := client.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		return fmt.Errorf("a pod without containers: want Invalid, got %v", err)
	}
	uid := types.UID("another")
	err = maps.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if !apierrors.IsConflict(err) {
		return fmt.Errorf("delete of another uid: want Conflict, got %v", err)
	}
	if err := maps.Delete(ctx, name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(made.UID))}); err != nil {
		return err
	}
	return maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "made-by=client-go"})
}

func retryOnConflict(ctx context.Context, c clients) error {
	maps := c.json.CoreV1().ConfigMaps(namespace)
	if _, err := maps.Create(ctx, configMap("counter", map[string]string{"n": "0"}), metav1.CreateOptions{}); err != nil {
		return err
	}
	var group sync.WaitGroup
	var failures atomic.Int32
	const workers, each = 8, 25
	for range workers {
		group.Add(1)
		go func() {
			defer group.Done()
			for range each {
				err := retry.OnError(retry.DefaultBackoff, func(err error) bool { return true }, func() error {
					return retry.RetryOnConflict(retry.DefaultRetry, func() error {
						current, err := maps.Get(ctx, "counter", metav1.GetOptions{})
						if err != nil {
							return err
						}
						var n int
						fmt.Sscan(current.Data["n"], &n)
						current.Data["n"] = fmt.Sprint(n + 1)
						_, err = maps.Update(ctx, current, metav1.UpdateOptions{})
						return err
					})
				})
				if err != nil {
					failures.Add(1)
				}
			}
		}()
	}
	group.Wait()
	final, err := maps.Get(ctx, "counter", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if want := fmt.Sprint(workers*each - int(failures.Load())); final.Data["n"] != want {
		return fmt.Errorf("counted to %s, want %s", final.Data["n"], want)
	}
	return nil
}

// Adds, updates and deletes arrive at handlers, the lister agrees with a list.
func sharedInformers(ctx context.Context, client kubernetes.Interface, prefix string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	informer := factory.Core().V1().Pods()
	var added, updated, deleted atomic.Int32
	_, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { added.Add(1) },
		UpdateFunc: func(any, any) { updated.Add(1) },
		DeleteFunc: func(any) { deleted.Add(1) },
	})
	if err != nil {
		return err
	}
	const before, after = 20, 30
	pods := client.CoreV1().Pods(namespace)
	for i := range before {
		if _, err := pods.Create(ctx, pod(fmt.Sprintf("%s-%d", prefix, i)), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.Informer().HasSynced) {
		return errors.New("the cache did not fill")
	}
	for i := before; i < before+after; i++ {
		made, err := pods.Create(ctx, pod(fmt.Sprintf("%s-%d", prefix, i)), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		made.Labels = map[string]string{"round": "2"}
		if _, err := pods.Update(ctx, made, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	zero := int64(0)
	if err := pods.DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &zero}, metav1.ListOptions{LabelSelector: "round=2"}); err != nil {
		return err
	}
	want := func() bool { return added.Load() == before+after && updated.Load() >= after && deleted.Load() == after }
	if err := until(ctx, want); err != nil {
		return fmt.Errorf("%d added, %d updated, %d deleted: %w", added.Load(), updated.Load(), deleted.Load(), err)
	}
	if err := pods.DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &zero}, metav1.ListOptions{}); err != nil {
		return err
	}
	return until(ctx, func() bool { return deleted.Load() == before+after })
}

func dynamicInformer(ctx context.Context, c clients) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovery.NewDiscoveryClientForConfigOrDie(c.config)))
	mapping, err := mapper.RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"})
	if err != nil {
		return err
	}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(c.dynamic, 0, namespace, nil)
	informer := factory.ForResource(mapping.Resource).Informer()
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return errors.New("the cache did not fill")
	}
	deployment := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "dynamic"},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"app": "dynamic"}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": "dynamic"}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": "example.test/main:1"}}},
			},
		},
	}}
	if _, err := c.dynamic.Resource(mapping.Resource).Namespace(namespace).Create(ctx, deployment, metav1.CreateOptions{}); err != nil {
		return err
	}
	return until(ctx, func() bool {
		_, there, err := informer.GetStore().GetByKey(namespace + "/dynamic")
		return err == nil && there
	})
}

func metadataClient(ctx context.Context, c clients) error {
	resource := c.metadata.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(namespace)
	list, err := resource.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if len(list.Items) == 0 || list.Items[0].Name == "" {
		return fmt.Errorf("%d objects", len(list.Items))
	}
	stream, err := resource.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return err
	}
	defer stream.Stop()
	if _, err := c.json.CoreV1().ConfigMaps(namespace).Create(ctx, configMap("seen-by-metadata", nil), metav1.CreateOptions{}); err != nil {
		return err
	}
	event := <-stream.ResultChan()
	object, ok := event.Object.(*metav1.PartialObjectMetadata)
	if event.Type != watch.Added || !ok || object.Name != "seen-by-metadata" {
		return fmt.Errorf("saw %s %+v", event.Type, event.Object)
	}
	return nil
}

func pages(ctx context.Context, c clients) error {
	for i := range 25 {
		if _, err := c.protobuf.CoreV1().ConfigMaps(namespace).Create(ctx, configMap(fmt.Sprintf("page-%02d", i), nil), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	for name, client := range map[string]kubernetes.Interface{"JSON": c.json, "protobuf": c.protobuf} {
		reader := pager.New(pager.SimplePageFunc(func(options metav1.ListOptions) (runtime.Object, error) {
			return client.CoreV1().ConfigMaps(namespace).List(ctx, options)
		}))
		reader.PageSize = 10
		seen := map[string]bool{}
		err := reader.EachListItem(ctx, metav1.ListOptions{LabelSelector: "made-by=client-go"}, func(object runtime.Object) error {
			name := object.(*corev1.ConfigMap).Name
			if seen[name] {
				return fmt.Errorf("%s came twice", name)
			}
			seen[name] = true
			return nil
		})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if len(seen) < 25 {
			return fmt.Errorf("%s: %d objects", name, len(seen))
		}
	}
	return nil
}

// A resourceVersion of the future and none at all are told apart as reflectors expect.
func expiredWatch(ctx context.Context, c clients) error {
	maps := c.json.CoreV1().ConfigMaps(namespace)
	list, err := maps.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	// Without the client's own ten retries, a second each.
	err = c.json.CoreV1().RESTClient().Get().Namespace(namespace).Resource("configmaps").
		Param("resourceVersion", "999999999").MaxRetries(0).Do(ctx).Error()
	if !apierrors.IsTimeout(err) || !apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		return fmt.Errorf("list of the future: want a timeout with ResourceVersionTooLarge, got %v", err)
	}
	seconds := int64(1)
	stream, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion, TimeoutSeconds: &seconds, AllowWatchBookmarks: true})
	if err != nil {
		return err
	}
	for event := range stream.ResultChan() {
		if event.Type == watch.Error {
			return fmt.Errorf("a quiet watch ended in %v", event.Object)
		}
	}
	return nil
}

func leaderElection(ctx context.Context, c clients) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var leads atomic.Int32
	var handedOver atomic.Bool
	run := func(ctx context.Context, identity string, onLead func()) {
		lock := &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: "leader"},
			Client:     c.protobuf.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		}
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: lock, ReleaseOnCancel: true,
			LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 500 * time.Millisecond,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { onLead() },
				OnStoppedLeading: func() {},
			},
		})
	}
	first, stopFirst := context.WithCancel(ctx)
	defer stopFirst()
	go run(first, "first", func() { leads.Add(1) })
	if err := until(ctx, func() bool { return leads.Load() == 1 }); err != nil {
		return err
	}
	go run(ctx, "second", func() { handedOver.Store(true) })
	stopFirst()
	return until(ctx, handedOver.Load)
}

func preferredResources(ctx context.Context, c clients) error {
	lists, err := discovery.NewDiscoveryClientForConfigOrDie(c.config).ServerPreferredResources()
	if err != nil {
		return err
	}
	count := 0
	for _, list := range lists {
		count += len(list.APIResources)
	}
	if count < 50 {
		return fmt.Errorf("%d resources", count)
	}
	return nil
}

func until(ctx context.Context, condition func() bool) error {
	for !condition() {
		select {
		case <-ctx.Done():
			return errors.New("not in time")
		case <-time.After(5 * time.Millisecond):
		}
	}
	return nil
}
