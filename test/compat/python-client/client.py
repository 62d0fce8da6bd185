"""Drives a control plane through the official Python client. Prints a line per step: "ok NAME" or "failed NAME: why"."""

import os
import sys
import tempfile
import threading
import traceback

from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.rest import ApiException

NAMESPACE = "python-client"
STEPS = []


def step(name):
    def register(run):
        STEPS.append((name, run))
        return run

    return register


def refused(status, reason, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except ApiException as error:
        body = error.body.decode() if isinstance(error.body, bytes) else error.body
        assert error.status == status and f'"reason":"{reason}"' in body.replace('": ', '":'), (
            f"want {status} {reason}, got {error.status} {body}"
        )
        return
    raise AssertionError(f"want {status} {reason}, but it succeeded")


def config_map(name, **data):
    metadata = client.V1ObjectMeta(name=name, labels={"made-by": "python"})
    return client.V1ConfigMap(metadata=metadata, data=data)


@step("namespace")
def namespace(api):
    core = client.CoreV1Api(api)
    core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=NAMESPACE)))


@step("typed objects")
def typed(api):
    core = client.CoreV1Api(api)
    made = core.create_namespaced_config_map(NAMESPACE, config_map("typed", a="1"))
    assert made.metadata.uid and made.metadata.creation_timestamp.tzinfo is not None, made.metadata
    refused(409, "AlreadyExists", core.create_namespaced_config_map, NAMESPACE, config_map("typed"))
    stale_version = made.metadata.resource_version
    made.data["a"] = "2"
    made = core.replace_namespaced_config_map("typed", NAMESPACE, made)
    stale = config_map("typed", a="3")
    stale.metadata.resource_version = stale_version
    refused(409, "Conflict", core.replace_namespaced_config_map, "typed", NAMESPACE, stale)
    refused(404, "NotFound", core.read_namespaced_config_map, "missing", NAMESPACE)
    refused(422, "Invalid", core.create_namespaced_config_map, NAMESPACE, config_map("Not_A_Name"))
    merged = core.patch_namespaced_config_map("typed", NAMESPACE, {"data": {"b": "4"}})
    assert merged.data == {"a": "2", "b": "4"}, merged.data
    operations = [{"op": "remove", "path": "/data/b"}]
    assert core.patch_namespaced_config_map("typed", NAMESPACE, operations).data == {"a": "2"}
    answer = core.delete_namespaced_config_map("typed", NAMESPACE)
    assert answer["status"] == "Success", answer


@step("a deployment, its scale and its status")
def deployment(api):
    apps = client.AppsV1Api(api)
    labels = {"app": "scaled"}
    container = client.V1Container(name="main", image="example.test/main:1")
    template = client.V1PodTemplateSpec(
        metadata=client.V1ObjectMeta(labels=labels), spec=client.V1PodSpec(containers=[container])
    )
    spec = client.V1DeploymentSpec(selector=client.V1LabelSelector(match_labels=labels), template=template)
    made = apps.create_namespaced_deployment(
        NAMESPACE, client.V1Deployment(metadata=client.V1ObjectMeta(name="scaled"), spec=spec)
    )
    assert made.spec.replicas == 1 and made.spec.strategy.type == "RollingUpdate", made.spec
    scaled = apps.patch_namespaced_deployment_scale("scaled", NAMESPACE, {"spec": {"replicas": 3}})
    assert scaled.spec.replicas == 3 and scaled.status.selector == "app=scaled", scaled
    status = apps.patch_namespaced_deployment_status("scaled", NAMESPACE, {"status": {"replicas": 3}})
    assert status.status.replicas == 3 and status.metadata.generation == 2, status.metadata
    answer = apps.delete_namespaced_deployment("scaled", NAMESPACE, propagation_policy="Background")
    assert answer["status"] == "Success", answer


@step("pages")
def pages(api):
    core = client.CoreV1Api(api)
    for index in range(7):
        core.create_namespaced_config_map(NAMESPACE, config_map(f"page-{index}"))
    names, token, remaining = [], None, []
    while True:
        page = core.list_namespaced_config_map(NAMESPACE, limit=3, _continue=token)
        names += [item.metadata.name for item in page.items if item.metadata.name.startswith("page-")]
        remaining.append(page.metadata.remaining_item_count)
        token = page.metadata._continue
        if not token:
            break
    assert names == [f"page-{index}" for index in range(7)], names
    assert remaining[-1] is None and remaining[0] is not None, remaining


@step("watch from a list")
def watching(api):
    core = client.CoreV1Api(api)
    version = core.list_namespaced_config_map(NAMESPACE).metadata.resource_version
    seen = []

    def write():
        core.create_namespaced_config_map(NAMESPACE, config_map("watched", n="0"))
        core.patch_namespaced_config_map("watched", NAMESPACE, {"data": {"n": "1"}})
        core.delete_namespaced_config_map("watched", NAMESPACE)

    writer = threading.Thread(target=write)
    writer.start()
    stream = watch.Watch()
    for event in stream.stream(
        core.list_namespaced_config_map,
        NAMESPACE,
        resource_version=version,
        allow_watch_bookmarks=True,
        timeout_seconds=30,
    ):
        if event["type"] == "BOOKMARK":
            continue
        seen.append((event["type"], event["object"].metadata.name))
        if event["type"] == "DELETED":
            stream.stop()
    writer.join()
    assert seen == [("ADDED", "watched"), ("MODIFIED", "watched"), ("DELETED", "watched")], seen


@step("a watch that ends by its timeout is taken up again")
def timed_watch(api):
    core = client.CoreV1Api(api)
    version = core.list_namespaced_config_map(NAMESPACE).metadata.resource_version
    for _ in range(2):
        for event in watch.Watch().stream(
            core.list_namespaced_config_map, NAMESPACE, resource_version=version, timeout_seconds=1
        ):
            raise AssertionError(event)


@step("dynamic client")
def dynamically(api):
    resources = dynamic.DynamicClient(api, cache_file=os.path.join(tempfile.mkdtemp(), "discovery"))
    jobs = resources.resources.get(api_version="batch/v1", kind="CronJob")
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "example.test/main:1"}]}
    body = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "dynamic"},
        "spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": {"spec": pod}}}},
    }
    made = jobs.create(body=body, namespace=NAMESPACE)
    assert made.spec.concurrencyPolicy == "Allow", made.spec
    patch = {"spec": {"suspend": True}}
    changed = jobs.patch(
        body=patch, name="dynamic", namespace=NAMESPACE, content_type="application/merge-patch+json"
    )
    assert changed.spec.suspend is True
    assert [item.metadata.name for item in jobs.get(namespace=NAMESPACE).items] == ["dynamic"]
    jobs.delete(name="dynamic", namespace=NAMESPACE)


@step("objects of a YAML file")
def from_yaml(api):
    text = """
apiVersion: v1
kind: Service
metadata: {name: from-yaml}
spec: {selector: {app: x}, ports: [{port: 80, targetPort: http}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: from-yaml}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
"""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(text)
        file.flush()
        utils.create_from_yaml(api, file.name, namespace=NAMESPACE)
    service = client.CoreV1Api(api).read_namespaced_service("from-yaml", NAMESPACE)
    assert service.spec.cluster_ip and service.spec.ports[0].target_port == "http", service.spec


@step("selectors and deletion of a collection")
def collection(api):
    core = client.CoreV1Api(api)
    selected = core.list_namespaced_config_map(NAMESPACE, label_selector="made-by in (python)")
    assert len(selected.items) == 7, len(selected.items)
    one = core.list_namespaced_config_map(NAMESPACE, field_selector="metadata.name=page-3")
    assert [item.metadata.name for item in one.items] == ["page-3"]
    refused(400, "BadRequest", core.list_namespaced_config_map, NAMESPACE, label_selector="a in (")
    core.delete_collection_namespaced_config_map(NAMESPACE, label_selector="made-by=python")
    assert core.list_namespaced_config_map(NAMESPACE, label_selector="made-by=python").items == []


def main():
    api = config.new_client_from_config(sys.argv[1])
    failed = False
    for name, run in STEPS:
        try:
            run(api)
            print(f"ok {name}", flush=True)
        except Exception as error:  # every failure is a step's outcome
            failed = True
            traceback.print_exc()
            print(f"failed {name}: {str(error)!r}", flush=True)
    sys.exit(1 if failed else 0)


main()
