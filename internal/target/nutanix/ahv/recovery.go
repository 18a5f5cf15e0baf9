package ahv

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"

	"github.com/braggdev/bragg/internal/target/nutanix/prism"
)

// RecoveryPoint is a snapshot of VMs.
type RecoveryPoint struct {
	ExtID   string    `json:"extId"`
	Name    string    `json:"name"`
	Created time.Time `json:"creationTime"`
	VMs     []struct {
		ExtID string `json:"extId"` // of the part of this VM
		VM    string `json:"vmExtId"`
	} `json:"vmRecoveryPoints"`
}

// Part returns the id of the part of a VM; "" if it is not in the recovery point.
func (r RecoveryPoint) Part(vm string) string {
	for _, p := range r.VMs {
		if p.VM == vm {
			return p.ExtID
		}
	}
	return ""
}

// Protection is the recovery points of a cluster.
type Protection struct{ *Cluster }

// Snapshot takes a crash-consistent recovery point of all disks of a VM at one instant.
func (c Protection) Snapshot(ctx context.Context, vm, name string, request uuid.UUID) error {
	_, err := c.Prism.Create(ctx, "dataprotection", "config/recovery-points", map[string]any{
		"name": name, "recoveryPointType": "CRASH_CONSISTENT", "vmRecoveryPoints": []any{map[string]any{"vmExtId": vm}},
	}, request)
	return err
}

// List lists those whose names begin with prefix.
func (c Protection) List(ctx context.Context, prefix string) ([]RecoveryPoint, error) {
	return prism.List[RecoveryPoint](ctx, c.Prism, "dataprotection", "config/recovery-points", prism.Filter("startswith(name,%s)", prefix))
}

// Delete removes a recovery point. One that does not exist is not an error.
func (c Protection) Delete(ctx context.Context, id string) error {
	path := "config/recovery-points/" + url.PathEscape(id)
	_, err := c.Prism.Change(ctx, "dataprotection", path, func(json.RawMessage) (prism.Request, error) {
		return prism.Request{Method: http.MethodDelete}, nil
	})
	if err == nil || prism.IsGone(err) {
		return nil
	}
	if _, looked := c.Prism.Get(ctx, "dataprotection", path, nil, &RecoveryPoint{}); prism.IsGone(looked) {
		return nil
	}
	return err
}

// Revert gives the disks of a VM, which is off, the content that they had in a part of a recovery point.
func (c Protection) Revert(ctx context.Context, vm, part string) error {
	_, err := c.change(ctx, vm, action("revert", map[string]any{"vmRecoveryPointExtId": part}))
	return err
}
