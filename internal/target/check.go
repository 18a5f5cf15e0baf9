package target

import "context"

// DatastoreChecker tells whether a node sees a datastore: nil, or why not.
type DatastoreChecker interface {
	DatastoreVisible(ctx context.Context, nodeID, datastore string) error
}

// DrainChecker tells whether the cluster's write cache (on Nutanix the oplog) is empty.
type DrainChecker interface {
	WriteCacheEmpty(ctx context.Context) (bool, error)
}
