package target

import "context"

// DatastoreChecker returns nil if a node sees a datastore, else the reason why not.
type DatastoreChecker interface {
	DatastoreVisible(ctx context.Context, nodeID, datastore string) error
}

// HostChecker returns nil if the system of a node answers, else the reason why not. A node can have power long before that.
type HostChecker interface {
	HostUp(ctx context.Context, nodeID string) error
}

// DrainChecker reports whether the cluster's write cache (on Nutanix the oplog) is empty.
type DrainChecker interface {
	WriteCacheEmpty(ctx context.Context) (bool, error)
}
