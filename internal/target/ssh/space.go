package ssh

import (
	"context"
	"fmt"
	"path"

	"github.com/braggdev/bragg/internal/hostvm"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/textio"
)

// NodeSpace returns the free space of the file system that holds the host's folder. Two hosts on the same machine share it
// if their folders are on the same device.
func (t *Target) NodeSpace(ctx context.Context, nodeID string) (target.Space, error) {
	h, err := t.host(nodeID)
	if err != nil {
		return target.Space{}, err
	}
	reply, err := h.call(ctx, hostvm.Request{Operation: hostvm.OpInfo})
	if err != nil {
		return target.Space{}, err
	}
	info := reply.Info
	if info == nil {
		return target.Space{}, fmt.Errorf("host %q did not report its identity", h.address.Name)
	}
	space := target.Space{
		Storage: nodeID, Place: fmt.Sprintf("the file system of %q", textio.Line(path.Dir(info.Folder))),
		FreeBytes: info.FreeBytes, TotalBytes: info.TotalBytes,
	}
	if info.Boot != "" && info.Device != 0 {
		space.Storage = fmt.Sprintf("%s %d", info.Boot, info.Device)
	}
	return space, nil
}
