package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/target"
)

// Others lists the VMs without tag in this folder, and those that run elsewhere on this machine.
func (ms *machines) Others(ctx context.Context, tag target.Tag) ([]target.Other, error) {
	if err := errors.Join(tag.Check(), context.Cause(ctx)); err != nil {
		return nil, err
	}
	var all []target.Other
	var known []string
	entries, err := os.ReadDir(ms.store.dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	for _, e := range entries {
		id, isOwner := strings.CutSuffix(e.Name(), ownerSuffix)
		if !isOwner || !e.Type().IsRegular() {
			continue
		}
		o, err := ms.store.readOwner(id)
		switch {
		case err != nil:
			all = append(all, target.Other{Kind: target.OtherVM, Name: id, Why: "its owner cannot be read"})
		case o.Mark != tag.Mark():
			all = append(all, target.Other{Kind: target.OtherVM, Name: o.Name, NodeID: ms.store.readRecord(o).VM.NodeID,
				Why: fmt.Sprintf("it belongs to another run, %q", o.Run)})
		}
		known = append(known, id)
	}
	for _, id := range ForeignVMs(tag) {
		if !slices.Contains(known, id) {
			all = append(all, target.Other{Kind: target.OtherVM, Name: id, Why: target.WhyAnother})
		}
	}
	return all, err
}
