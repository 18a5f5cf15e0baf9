package disks

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target/kube/api"
	"github.com/braggdev/bragg/internal/target/kube/events"
	"github.com/braggdev/bragg/internal/target/kube/object"
)

// Claims are the disks of VMs: one PersistentVolumeClaim each. Its methods may be called concurrently for several VMs.
type Claims struct {
	client  *api.Client
	options Options
	mirror  *api.Mirror[corev1.PersistentVolumeClaim]
	bindMax time.Duration
	goneMax time.Duration
	look    time.Duration // when a claim without a volume makes this program read its events
}

// Options are how claims are made.
type Options struct {
	Class    string // storage class; "": the cluster's default
	Access   corev1.PersistentVolumeAccessMode
	Patience time.Duration // how long the cluster may take for one thing
}

// NewClaims makes Claims. It makes no calls.
func NewClaims(c *api.Client, o Options) *Claims {
	return &Claims{
		client: c, options: o, mirror: api.NewMirror[corev1.PersistentVolumeClaim](c, api.Claims, object.Ours),
		bindMax: min(o.Patience, claimBindMax), goneMax: max(min(o.Patience, claimGoneMax), goneLeast), look: min(o.Patience/5, claimLook),
	}
}

// Wait waits for the end of the watch, after the client was closed.
func (c *Claims) Wait() { c.mirror.Wait() }

const (
	claimBindMax = 5 * time.Minute
	claimGoneMax = 5 * time.Minute
	goneLeast    = 30 * time.Second
	// A provisioner that failed repeats forever.
	claimLook = 20 * time.Second
)

// selectedNode makes the provisioner of a class with late binding provide the volume for a node before the first pod uses it, as
// the scheduler would: a VM has its disks from its creation on, so that they can be cloned, and a full pool is found at once.
const selectedNode = "volume.kubernetes.io/selected-node"

// claim describes the claim of a volume. from is the source of its content; nil: the volume's own.
func (c *Claims) claim(r object.Record, tag object.Owner, v object.Volume, from *corev1.TypedLocalObjectReference) *corev1.PersistentVolumeClaim {
	mode := corev1.PersistentVolumeFilesystem
	if v.Block {
		mode = corev1.PersistentVolumeBlock
	}
	if from == nil && v.Source != "" {
		from = &corev1.TypedLocalObjectReference{Kind: api.Claims.Kind, Name: v.Source}
	}
	p := &corev1.PersistentVolumeClaim{ObjectMeta: r.Meta(v.Claim, tag)}
	p.Annotations[selectedNode] = r.VM.NodeID
	p.Spec = corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{c.options.Access}, VolumeMode: &mode, DataSource: from,
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(v.SizeBytes, resource.BinarySI)}},
	}
	if class := c.options.Class; class != "" {
		p.Spec.StorageClassName = &class
	}
	return p
}

// Make makes the claims of a VM and waits until all have volumes. from may be nil, or has the source of each volume.
func (c *Claims) Make(ctx context.Context, r object.Record, tag object.Owner, from []*corev1.TypedLocalObjectReference) error {
	volumes := r.Volumes()
	for i, v := range volumes {
		var source *corev1.TypedLocalObjectReference
		if from != nil {
			source = from[i]
		}
		_, err := api.Create(ctx, c.client, api.Claims, c.claim(r, tag, v, source), func(p *corev1.PersistentVolumeClaim) bool {
			return object.MarkOf(p) == tag.Mark && p.Labels[object.LabelVM] == r.VM.ID
		})
		if err != nil {
			return err
		}
	}
	for _, v := range volumes {
		if err := c.bound(ctx, v.Claim); err != nil {
			return fmt.Errorf("disk %s: %w", v.Device, err)
		}
	}
	return nil
}

// bound waits until a claim has a volume, and reports what the cluster says where it does not get one.
func (c *Claims) bound(ctx context.Context, name string) error {
	var uid string
	look := func(o *api.Seen[corev1.PersistentVolumeClaim]) (bool, error) {
		switch {
		case o == nil:
			return false, nil
		case o.Object.Status.Phase == corev1.ClaimLost:
			return false, fmt.Errorf("claim %q lost its volume", name)
		}
		uid = o.UID
		return o.Object.Status.Phase == corev1.ClaimBound, nil
	}
	began := time.Now()
	for {
		slice, cancel := context.WithTimeout(ctx, min(c.look, c.bindMax))
		err := c.mirror.Await(slice, name, look)
		cancel()
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		said := events.Of(ctx, c.client, uid)
		if failed := said.Text("ProvisioningFailed", "FailedBinding"); failed == "" && time.Since(began) < c.bindMax {
			continue
		}
		return &diag.Error{
			Code: "kube-claim-pending", Exit: diag.ExitUnavailable,
			Message: fmt.Sprintf("claim %q has no volume after %s: %s", name, time.Since(began).Round(time.Second), said),
			Hint:    fmt.Sprintf("kubectl -n %s describe pvc %s; the storage class is the target file's pool", c.client.Namespace, name),
		}
	}
}

// owned lists the claims of VMs by the id of their VM.
func (c *Claims) owned(ctx context.Context, mark string) (map[string][]api.Seen[corev1.PersistentVolumeClaim], error) {
	all, err := c.mirror.All(ctx)
	if err != nil {
		return nil, err
	}
	by := map[string][]api.Seen[corev1.PersistentVolumeClaim]{}
	for _, p := range all {
		if object.MarkOf(&p.Object) == mark {
			id := p.Object.Labels[object.LabelVM]
			by[id] = append(by[id], p)
		}
	}
	return by, nil
}

// Remove deletes the claims of a VM and waits until they are gone: until the last pod that uses them is.
func (c *Claims) Remove(ctx context.Context, r object.Record) error {
	all, err := c.owned(ctx, r.Mark)
	if err != nil {
		return err
	}
	list := all[r.VM.ID]
	for _, p := range list {
		if err := c.client.Delete(ctx, api.Claims, p.Name, p.Object.UID, -1); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, c.goneMax)
	defer cancel()
	for _, p := range list {
		err := c.mirror.Await(ctx, p.Name, func(o *api.Seen[corev1.PersistentVolumeClaim]) (bool, error) { return o == nil || o.UID != p.UID, nil })
		if errors.Is(err, context.DeadlineExceeded) {
			return &diag.Error{
				Code: "kube-claim-stays", Exit: diag.ExitUnavailable, Err: err,
				Message: fmt.Sprintf("claim %q was deleted and is still there after %s", p.Name, c.goneMax),
				Hint:    "a pod may use it, or its driver does not answer: kubectl describe pvc " + p.Name,
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
