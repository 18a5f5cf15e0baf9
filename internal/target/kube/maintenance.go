package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube/api"
	"github.com/braggdev/bragg/internal/wait"
)

// maintenance cordons nodes and evicts their pods, as kubectl drain does. It needs more rights than load: see rights.Maintenance.
type maintenance struct {
	cluster *cluster
	locks   *target.KeyLocks // by node
	limit   time.Duration
}

const (
	evictMax   = 10 * time.Minute // until the last pod has left a node
	evictPause = time.Second
)

// EnterMaintenance cordons a node and evicts all pods but those of DaemonSets and of the node itself. Disruption budgets hold: a pod
// that may not be evicted now is evicted when its budget allows it.
func (m *maintenance) EnterMaintenance(ctx context.Context, nodeID string) error {
	if err := m.cordon(ctx, nodeID, true); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, m.limit)
	defer cancel()
	for {
		left, refused, err := m.evict(bounded, nodeID)
		if err != nil {
			return fmt.Errorf("drain node %q: %w", nodeID, err)
		}
		if len(left) == 0 {
			return nil
		}
		if wait.For(bounded, evictPause) == nil {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		e := &diag.Error{
			Code: "kube-drain", Exit: diag.ExitUnavailable,
			Message: fmt.Sprintf("drain node %q: after %s there are still %s", nodeID, m.limit, strings.Join(left, ", ")),
			Hint:    "the node is cordoned; kubectl uncordon admits pods again",
		}
		if refused != nil {
			e.Message += ": " + refused.Error()
		}
		return e
	}
}

// ExitMaintenance admits pods to a node again. Pods that have left it do not come back by that.
func (m *maintenance) ExitMaintenance(ctx context.Context, nodeID string) error {
	return m.cordon(ctx, nodeID, false)
}

// cordonTries bounds how often a node is written that others change at the same time: its kubelet does.
const cordonTries = 10

// cordon sets whether the scheduler leaves a node out, and waits until this program sees it.
func (m *maintenance) cordon(ctx context.Context, nodeID string, cordoned bool) error {
	if _, err := m.cluster.node(ctx, nodeID); err != nil {
		return err
	}
	if !m.cluster.config.Allow.Maintenance {
		return target.MaintenanceForbidden(nodeID)
	}
	defer m.locks.Lock(nodeID)()
	for range cordonTries {
		n, err := api.Get[corev1.Node](ctx, m.cluster.client, api.Nodes, nodeID)
		if err != nil {
			return err
		}
		if n.Spec.Unschedulable != cordoned {
			n.Spec.Unschedulable = cordoned
			_, err = api.Update[corev1.Node](ctx, m.cluster.client, api.Nodes, n)
		}
		if api.Conflict(err) {
			continue
		}
		if err != nil {
			return err
		}
		return m.cluster.hosts.Await(ctx, nodeID, func(o *api.Seen[corev1.Node]) (bool, error) {
			return o != nil && o.Object.Spec.Unschedulable == cordoned, nil
		})
	}
	return fmt.Errorf("change node %q: others change it all the time", nodeID)
}

// evict requests the eviction of every pod on a node that is not leaving it, and returns those that are still there, and why the
// last of them may not leave.
func (m *maintenance) evict(ctx context.Context, nodeID string) (left []string, refused, err error) {
	all, err := m.cluster.podsOn(ctx, nodeID)
	if err != nil {
		return nil, nil, err
	}
	for i := range all {
		o := &all[i]
		if daemon(o) || o.Status.Phase == corev1.PodSucceeded || o.Status.Phase == corev1.PodFailed {
			continue
		}
		left = append(left, "pod "+o.Namespace+"/"+o.Name)
		if o.DeletionTimestamp != nil {
			continue
		}
		body, err := json.Marshal(map[string]any{
			"apiVersion": "policy/v1", "kind": "Eviction", "metadata": map[string]string{"name": o.Name, "namespace": o.Namespace},
			"deleteOptions": map[string]any{"preconditions": map[string]any{"uid": o.UID}},
		})
		if err != nil {
			return nil, nil, err
		}
		_, err = m.cluster.client.Raw(ctx, http.MethodPost, fmt.Sprintf("/api/v1/namespaces/%s/pods/%s/eviction", o.Namespace, o.Name), body)
		var known *diag.Error
		switch {
		case err == nil, api.NotFound(err), api.Conflict(err):
		case errors.As(err, &known) && known.Code == api.CodeBusy: // its budget does not allow it now
			refused = err
		case ctx.Err() != nil:
			return left, refused, nil // the caller says how long it waited
		default:
			return nil, nil, err
		}
	}
	return left, refused, nil
}
