// Package keys keeps the Secrets with the identities of agents, one for each VM.
package keys

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube/api"
	"github.com/braggdev/bragg/internal/target/kube/object"
)

// Keeper makes and removes Secrets. Its methods may be called concurrently for several VMs.
type Keeper struct {
	client *api.Client

	mu      sync.Mutex
	planted map[string]types.UID // Secrets that this program made, by VM
}

// NewKeeper makes a Keeper. It makes no calls.
func NewKeeper(c *api.Client) *Keeper { return &Keeper{client: c, planted: map[string]types.UID{}} }

// Plant makes the Secret of a VM, once for each run of this program: an older one is of an authority that is gone, and is replaced.
func (k *Keeper) Plant(ctx context.Context, r object.Record, tag object.Owner, describe func() (*corev1.Secret, error)) error {
	k.mu.Lock()
	_, known := k.planted[r.VM.ID]
	k.mu.Unlock()
	if known {
		return nil
	}
	s, err := describe()
	if err != nil {
		return err
	}
	made, err := api.Create[corev1.Secret](ctx, k.client, api.Secrets, s, nil)
	if api.Exists(err) {
		var old *corev1.Secret
		if old, err = api.Get[corev1.Secret](ctx, k.client, api.Secrets, r.VM.ID); err != nil {
			return err
		}
		if object.MarkOf(old) != tag.Mark {
			return target.Foreign(fmt.Sprintf("secret %q", r.VM.ID))
		}
		s.ResourceVersion = old.ResourceVersion
		made, err = api.Update[corev1.Secret](ctx, k.client, api.Secrets, s)
	}
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.planted[r.VM.ID] = made.UID
	return nil
}

// Remove deletes the Secret of a VM. One of another owner stays.
func (k *Keeper) Remove(ctx context.Context, r object.Record) error {
	k.mu.Lock()
	uid, known := k.planted[r.VM.ID]
	delete(k.planted, r.VM.ID)
	k.mu.Unlock()
	if known {
		return k.client.Delete(ctx, api.Secrets, r.VM.ID, uid, -1)
	}
	old, err := api.Get[corev1.Secret](ctx, k.client, api.Secrets, r.VM.ID)
	if api.NotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if object.MarkOf(old) != r.Mark {
		return nil
	}
	return k.client.Delete(ctx, api.Secrets, r.VM.ID, old.UID, -1)
}
