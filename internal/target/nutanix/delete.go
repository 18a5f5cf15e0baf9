package nutanix

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/target"
)

// remover finds and removes VMs.
type remover struct {
	cluster *cluster
	agents  *agents
}

// Owned lists the VMs with the tag, with their current node and power. A clone that was not finished has its name of Prism.
func (r *remover) Owned(ctx context.Context, tag target.Tag) ([]target.VM, error) {
	if err := tag.Check(); err != nil {
		return nil, err
	}
	r.cluster.runs.add(tag)
	if err := r.cluster.settle(ctx, tag); err != nil {
		return nil, err
	}
	s, err := r.cluster.survey(ctx)
	if err != nil {
		return nil, err
	}
	vms := []target.VM{}
	for _, one := range s.owned(tag.Mark()) {
		vms = append(vms, one.vm(s.nodes))
	}
	return vms, nil
}

// Delete powers off and removes VMs with their disks and recovery points.
func (r *remover) Delete(ctx context.Context, tag target.Tag, vms []target.VM) error {
	_, list, err := r.cluster.find(ctx, tag, vms, true)
	if err == nil {
		err = r.remove(ctx, tag, list)
	}
	if err != nil {
		return fmt.Errorf("delete VMs: %w", err)
	}
	return nil
}

// remove removes VMs that carry the tag.
func (r *remover) remove(ctx context.Context, tag target.Tag, list []*info) error {
	list = slices.DeleteFunc(slices.Clone(list), func(one *info) bool { return one == nil })
	if len(list) == 0 {
		return nil
	}
	err := onEach(ctx, "power off", list, func(one *info) error {
		r.agents.link.HangUp(one.ExtID)
		return gone(r.cluster.ahv.PowerOff(ctx, one.ExtID))
	})
	// VMs that are without power go in any case; others stay for the next attempt.
	points := r.removePoints(ctx, tag, list)
	if err := errors.Join(err, points); err != nil {
		return err
	}
	return onEach(ctx, "delete", list, func(one *info) error { return r.cluster.ahv.Delete(ctx, one.ExtID) })
}

// removePoints removes the recovery points of VMs. They have the mark in their names too, and would outlive their VMs.
func (r *remover) removePoints(ctx context.Context, tag target.Tag, list []*info) error {
	points, err := r.cluster.points().List(ctx, runPrefix(tag.Mark()))
	if err != nil {
		return fmt.Errorf("list recovery points: %w", err)
	}
	var theirs []string
	for _, p := range points {
		if !strings.HasPrefix(p.Name, runPrefix(tag.Mark())) {
			continue
		}
		if slices.ContainsFunc(list, func(one *info) bool { return p.Part(one.ExtID) != "" }) {
			theirs = append(theirs, p.ExtID)
		}
	}
	return target.Each(ctx, len(theirs), func(i int) error {
		if err := r.cluster.points().Delete(ctx, theirs[i]); err != nil {
			return fmt.Errorf("delete recovery point: %w", err)
		}
		return nil
	})
}
