// Package kubelock is the lease of a namespace, an object of coordination.k8s.io, as a place of package lease.
package kubelock

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/braggdev/bragg/internal/lease"
	"github.com/braggdev/bragg/internal/target/kube/api"
	"github.com/braggdev/bragg/internal/target/kube/object"
)

const (
	leaseName  = "bragg"
	holderNote = "bragg.dev/holder"
	takesMax   = 10 // how often a lease is tried that others change at the same time
)

// Place is the lease of a namespace: one Lease object, which the server lets only one of two writers change that have read the same
// version of it. It stays when the lease is given back, so that the fence in it never falls.
type Place struct {
	Client *api.Client
	Scope  string // "" but in tests
}

// Name is the namespace.
func (p Place) Name() string { return "namespace " + p.Client.Namespace }

// Identity is the server and the namespace.
func (p Place) Identity(context.Context) (string, error) {
	return p.Client.Host + "/" + p.Client.Namespace, nil
}

func (p Place) object() string {
	if p.Scope != "" {
		return leaseName + "-" + object.Hostname(p.Scope)
	}
	return leaseName
}

// Take takes the lease or renews it.
func (p Place) Take(ctx context.Context, o lease.Order) (lease.Answer, error) {
	for range takesMax {
		a, err := p.try(ctx, o)
		if api.NoNamespace(err) {
			return a, api.MissingNamespace(p.Client.Namespace)
		}
		if api.Conflict(err) || api.Exists(err) || api.NotFound(err) { // another changed it meanwhile
			continue
		}
		return a, err
	}
	return lease.Answer{}, errors.New("the lease comes and goes")
}

func (p Place) try(ctx context.Context, o lease.Order) (lease.Answer, error) {
	client := p.Client
	now, err := api.Get[coordinationv1.Lease](ctx, client, api.Leases, p.object())
	if api.NotFound(err) {
		fresh := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: p.object(), Labels: map[string]string{object.LabelManager: object.Manager}}}
		if err := write(fresh, o.Holder, 0); err != nil {
			return lease.Answer{}, err
		}
		_, err := api.Create[coordinationv1.Lease](ctx, client, api.Leases, fresh, func(l *coordinationv1.Lease) bool { return holderOf(l).ID == o.Holder.ID })
		return lease.Answer{Fence: o.Holder.Fence}, err
	}
	if err != nil {
		return lease.Answer{}, err
	}
	h, held := o.Holder, holderOf(now)
	last := fenceOf(now)
	switch {
	case held.ID == h.ID: // renewal
		h.Fence = max(h.Fence, held.Fence)
	case held.ID != "" && held.ID != o.Over:
		return lease.Answer{Other: &held}, nil
	default:
		h.Fence = max(h.Fence, last+1)
	}
	transitions := int32(0)
	if now.Spec.LeaseTransitions != nil {
		transitions = *now.Spec.LeaseTransitions
	}
	if held.ID != h.ID {
		transitions++
	}
	if err := write(now, h, transitions); err != nil {
		return lease.Answer{}, err
	}
	if _, err := api.Update[coordinationv1.Lease](ctx, client, api.Leases, now); err != nil {
		return lease.Answer{}, err
	}
	return lease.Answer{Fence: h.Fence}, nil
}

// write puts a holder into a lease.
func write(l *coordinationv1.Lease, h lease.Holder, transitions int32) error {
	h.Renewed = time.Now().UTC().Truncate(time.Second)
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if l.Annotations == nil {
		l.Annotations = map[string]string{}
	}
	l.Annotations[holderNote] = string(text)
	seconds, renewed := int32(lease.Life/time.Second), metav1.NewMicroTime(h.Renewed)
	since := metav1.NewMicroTime(h.Since)
	l.Spec = coordinationv1.LeaseSpec{
		HolderIdentity: &h.ID, LeaseDurationSeconds: &seconds, AcquireTime: &since, RenewTime: &renewed, LeaseTransitions: &transitions,
	}
	return nil
}

// holderOf returns the holder; one without an ID: it is free.
func holderOf(l *coordinationv1.Lease) lease.Holder {
	var h lease.Holder
	if l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "" || json.Unmarshal([]byte(l.Annotations[holderNote]), &h) != nil {
		return lease.Holder{}
	}
	return h
}

// fenceOf returns the highest fence so far.
func fenceOf(l *coordinationv1.Lease) uint64 {
	var h lease.Holder
	_ = json.Unmarshal([]byte(l.Annotations[holderNote]), &h)
	return h.Fence
}

// Drop gives the lease back. Where that id has it no more, it does nothing.
func (p Place) Drop(ctx context.Context, id string) error {
	for range takesMax {
		now, err := api.Get[coordinationv1.Lease](ctx, p.Client, api.Leases, p.object())
		if api.NotFound(err) {
			return nil
		}
		if err != nil || holderOf(now).ID != id {
			return err
		}
		now.Spec.HolderIdentity = nil
		if _, err = api.Update[coordinationv1.Lease](ctx, p.Client, api.Leases, now); !api.Conflict(err) {
			return err
		}
	}
	return errors.New("the lease comes and goes")
}
