package target

import "context"

// DatastoreChecker reports whether a node sees a datastore: nil, or why not.
type DatastoreChecker interface {
	DatastoreVisible(ctx context.Context, nodeID, datastore string) error
}

// HostChecker reports whether the system of a node answers: nil, or why not. A node can have power long before.
type HostChecker interface {
	HostUp(ctx context.Context, nodeID string) error
}

// DrainChecker reports whether the cluster's write cache (on Nutanix the oplog) is empty.
type DrainChecker interface {
	WriteCacheEmpty(ctx context.Context) (bool, error)
}
