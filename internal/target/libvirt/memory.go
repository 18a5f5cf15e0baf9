package libvirt

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/braggdev/bragg/internal/durable"
	"github.com/braggdev/bragg/internal/target/libvirt/domain"
	"github.com/braggdev/bragg/internal/target/libvirt/virsh"
)

// memory keeps, on the controller, what a host that is switched off cannot tell: which VMs of the run it has. It may be lost: then
// the VMs are visible again when the host is.
type memory struct{ dir string }

// remembered is one VM.
type remembered struct {
	Mark   string        `json:"mark"`
	Node   string        `json:"node"` // where it was last put
	Record domain.Record `json:"record"`
}

const (
	memorySuffix   = ".libvirt.json"
	memoryBytesMax = 1 << 20 // of one VM
)

func (m *memory) path(id string) string { return filepath.Join(m.dir, id+memorySuffix) }

// keep writes a VM down; readers see it whole or not at all.
func (m *memory) keep(r remembered) (err error) {
	if m.dir == "" {
		return nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("remember vm %q: %w", r.Record.VM.Name, err)
		}
	}()
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return err
	}
	return durable.WriteFile(m.path(r.Record.VM.ID), text, 0o600)
}

func (m *memory) forget(id string) error {
	if m.dir == "" || !virsh.IsUUID(id) {
		return nil
	}
	if err := os.Remove(m.path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget vm %q: %w", id, err)
	}
	return nil
}

// all returns the VMs with that mark. Files that cannot be read are skipped.
func (m *memory) all(mark string) []remembered {
	if m.dir == "" {
		return nil
	}
	entries, _ := os.ReadDir(m.dir)
	var list []remembered
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), memorySuffix)
		if !ok || !virsh.IsUUID(id) {
			continue
		}
		text, err := durable.ReadFile(m.path(id), memoryBytesMax)
		var r remembered
		if err == nil && json.Unmarshal(text, &r) == nil && r.Mark == mark && r.Record.VM.ID == id {
			list = append(list, r)
		}
	}
	return list
}
