package nutanix

import (
	"errors"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/lab/prism"
	"github.com/braggdev/bragg/internal/lab/prism/faults"
	"github.com/braggdev/bragg/internal/lease"
	"github.com/braggdev/bragg/internal/target"
)

// What a target file names and Prism does not have is known before a run, with what there is.
func TestReferences(t *testing.T) {
	r := newRig(t, prism.Options{})
	good := r.config
	for name, c := range map[string]struct {
		change func()
		want   []string
	}{
		"image":    {func() { r.config.Templates = map[string]string{template: "debian-12"} }, []string{`find template "debian": find image "debian-12": Prism has bragg-debian-12`}},
		"several":  {func() { r.config.Network, r.config.Templates = "vlan-9", map[string]string{template: "debian-12"} }, []string{`vlan-9": Prism has vm-network; find template`}},
		"file":     {func() { r.config.Templates = map[string]string{template: "/nowhere/image.qcow2"} }, []string{`find template "debian"`, "/nowhere/image.qcow2"}},
		"folder":   {func() { r.config.Templates = map[string]string{template: t.TempDir()} }, []string{"not a regular file"}},
		"network":  {func() { r.config.Network = "vlan-9" }, []string{`find subnet "vlan-9": Prism has `, "network"}},
		"no API":   {func() { r.Faults.Add(faults.Rule{Request: "OPTIONS /api/dataprotection/*/info", Status: 404}) }, []string{`API "dataprotection" in version 4`, "pc.2024.3"}},
		"old API":  {func() { r.Faults.Add(faults.Rule{Request: "OPTIONS /api/*/*/info", Status: 404}) }, []string{"does not have it", "not a Prism Element"}},
		"no image": {func() { r.Faults.Add(faults.Rule{Request: "GET /api/vmm/*/content/images", Status: 403}) }, []string{"lacks a privilege"}},
	} {
		t.Run(name, func(t *testing.T) {
			r.config = good
			r.Faults.Clear()
			c.change()
			l := r.open(t, nil)
			defer l.Close()
			_, err := l.Inventory(t.Context())
			text := diag.Sentence(err)
			var e *diag.Error
			if errors.As(err, &e) {
				text += " " + e.Hint
			}
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("got %q, want %q", text, want)
				}
			}
			if name == "several" { // cleaning takes the lease first, and must not need them
				lock, err := l.(target.Locker).Lock(t.Context(), lease.NewHolder("run-1", 0))
				if err != nil {
					t.Fatal(err)
				}
				if i, err := l.Inventory(t.Context()); err != nil || len(i.Nodes) != 3 {
					t.Errorf("with the lease: %+v, %v", i.Nodes, err)
				}
				if err := lock.Unlock(); err != nil {
					t.Error(err)
				}
			}
			if code := diag.ExitCode(err); err == nil || name != "file" && name != "folder" && code != diag.ExitUnavailable {
				t.Errorf("exit code %d: %v", code, err)
			}
		})
	}
}
