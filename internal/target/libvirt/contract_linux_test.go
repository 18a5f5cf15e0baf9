package libvirt

import (
	"maps"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/targettest"
)

// Most of the contract does not need a guest; only dialling an agent needs one that boots.
func TestContract(t *testing.T) {
	r := newRig(t)
	authority := r.withGuests(t)
	known := &dirs{all: map[target.Target]string{}}
	targettest.Run(t, targettest.Harness{
		Open: func(t *testing.T) target.Target {
			dir := t.TempDir()
			var l target.Target
			if strings.HasSuffix(t.Name(), "/dial") {
				booting := *r
				booting.config.Templates = maps.Clone(r.config.Templates)
				delete(booting.config.Templates, blankTemplate)
				l = booting.open(t, dir, nil, authority)
			} else {
				l = r.open(t, dir, nil, nil)
			}
			l.(target.NodeLimiter).LimitNodesOff(1)
			known.set(l, dir)
			return l
		},
		Reopen: func(t *testing.T, before target.Target) target.Target {
			l := r.open(t, known.of(before), nil, nil)
			known.set(l, known.of(before))
			return l
		},
		Greet:     greet,
		WriteDisk: r.writeDisk,
		ReadDisk:  r.readDisk,
		Leftovers: func(t *testing.T, before target.Target) []string { return r.leftovers(t, known.of(before)) },
	})
}
