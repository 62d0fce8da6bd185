/** The part of etcd's client protocol that EtcdStore speaks; field numbers are etcd's public API. */
export const etcdProto = `
syntax = "proto3";
package trireme.etcd;

message ResponseHeader { uint64 cluster_id = 1; uint64 member_id = 2; int64 revision = 3; uint64 raft_term = 4; }
message KeyValue {
  bytes key = 1; int64 create_revision = 2; int64 mod_revision = 3; int64 version = 4; bytes value = 5; int64 lease = 6;
}

message RangeRequest {
  bytes key = 1; bytes range_end = 2; int64 limit = 3; int64 revision = 4;
  bool serializable = 7; bool keys_only = 8; bool count_only = 9;
}
message RangeResponse { ResponseHeader header = 1; repeated KeyValue kvs = 2; bool more = 3; int64 count = 4; }
message PutRequest { bytes key = 1; bytes value = 2; int64 lease = 3; bool prev_kv = 4; }
message PutResponse { ResponseHeader header = 1; KeyValue prev_kv = 2; }
message DeleteRangeRequest { bytes key = 1; bytes range_end = 2; bool prev_kv = 3; }
message DeleteRangeResponse { ResponseHeader header = 1; int64 deleted = 2; repeated KeyValue prev_kvs = 3; }
message RequestOp {
  oneof request {
    RangeRequest request_range = 1; PutRequest request_put = 2;
    DeleteRangeRequest request_delete_range = 3; TxnRequest request_txn = 4;
  }
}
message ResponseOp {
  oneof response {
    RangeResponse response_range = 1; PutResponse response_put = 2;
    DeleteRangeResponse response_delete_range = 3; TxnResponse response_txn = 4;
  }
}
message Compare {
  int32 result = 1; int32 target = 2; bytes key = 3;
  oneof target_union {
    int64 version = 4; int64 create_revision = 5; int64 mod_revision = 6; bytes value = 7; int64 lease = 8;
  }
  bytes range_end = 64;
}
message TxnRequest { repeated Compare compare = 1; repeated RequestOp success = 2; repeated RequestOp failure = 3; }
message TxnResponse { ResponseHeader header = 1; bool succeeded = 2; repeated ResponseOp responses = 3; }
message CompactionRequest { int64 revision = 1; bool physical = 2; }
message CompactionResponse { ResponseHeader header = 1; }

message Event { int32 type = 1; KeyValue kv = 2; KeyValue prev_kv = 3; }
message WatchRequest {
  oneof request_union {
    WatchCreateRequest create_request = 1; WatchCancelRequest cancel_request = 2;
    WatchProgressRequest progress_request = 3;
  }
}
message WatchCreateRequest { bytes key = 1; bytes range_end = 2; int64 start_revision = 3; bool prev_kv = 6; }
message WatchCancelRequest { int64 watch_id = 1; }
message WatchProgressRequest { }
message WatchResponse {
  ResponseHeader header = 1; int64 watch_id = 2; bool created = 3; bool canceled = 4; int64 compact_revision = 5;
  string cancel_reason = 6; repeated Event events = 11;
}

message LeaseGrantRequest { int64 TTL = 1; int64 ID = 2; }
message LeaseGrantResponse { ResponseHeader header = 1; int64 ID = 2; int64 TTL = 3; }
message LeaseRevokeRequest { int64 ID = 1; }
message LeaseRevokeResponse { ResponseHeader header = 1; }
message LeaseKeepAliveRequest { int64 ID = 1; }
message LeaseKeepAliveResponse { ResponseHeader header = 1; int64 ID = 2; int64 TTL = 3; }
message LeaseTimeToLiveRequest { int64 ID = 1; bool keys = 2; }
message LeaseTimeToLiveResponse {
  ResponseHeader header = 1; int64 ID = 2; int64 TTL = 3; int64 grantedTTL = 4; repeated bytes keys = 5;
}
`
