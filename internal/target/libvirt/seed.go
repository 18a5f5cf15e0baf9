package libvirt

import (
	"context"

	"github.com/braggdev/bragg/internal/target"
)

// seeds tells whether guests get a disk that tells them who they are.
func (t *Target) seeds() bool { return false }

// plant makes that disk.
func (t *Target) plant(context.Context, *blueprint) error { return nil }

// renew makes it again where another program had made it.
func (t *Target) renew(context.Context, *seen) error { return nil }

// readTemplate finds out what a template of the target file is.
func (t *Target) readTemplate(name, value string) (*template, error) {
	return &template{name: name, volume: value}, nil
}

// poweredNode returns nil unless the node is known to have no power.
func (t *Target) poweredNode(context.Context, *node) error { return nil }

var _ target.Target = (*Target)(nil)
