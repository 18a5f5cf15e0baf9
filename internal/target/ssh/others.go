package ssh

import (
	"context"

	"github.com/braggdev/bragg/internal/hostvm"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/textio"
)

// Others lists the VMs without the tag on all hosts: those of other runs, and processes of hypervisors.
func (t *Target) Others(ctx context.Context, tag target.Tag) ([]target.Other, error) {
	if err := tag.Check(); err != nil {
		return nil, err
	}
	found := make([][]target.Other, len(t.hosts))
	err := t.onHosts(func(i int, h *host) error {
		reply, err := h.call(ctx, hostvm.Request{Operation: hostvm.OpOthers, Tag: tag})
		for _, o := range reply.Others {
			o.Name, o.Why, o.NodeID = textio.Line(o.Name), textio.Line(o.Why), h.node.ID
			found[i] = append(found[i], o)
		}
		return err
	})
	var all []target.Other
	for _, one := range found {
		all = append(all, one...)
	}
	return all, err
}
