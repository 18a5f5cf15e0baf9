package targettest

import (
	"context"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/target"
)

// others: foreign VMs are listed with a reason, running or not, and own VMs never are.
func others(s *suite) {
	lister, ok := s.target.(target.OtherLister)
	if !ok {
		return
	}
	mine := s.create("OLTP", 2)
	if s.needs(target.CapVMPower) {
		s.powerOn(mine[:1])
	}
	foreign := NewTag("run-1")
	specs := s.specs("THEIRS", 1)
	theirs, err := s.target.Create(s.Context(), foreign, specs)
	s.must(err)
	listed := func(tag target.Tag, vm target.VM) bool {
		s.Helper()
		all, err := lister.Others(s.Context(), tag)
		s.must(err)
		return slices.ContainsFunc(all, func(o target.Other) bool {
			if o.Kind == "" || o.Name == "" || o.Why == "" {
				s.Errorf("%+v does not say what it is and why it is skipped", o)
			}
			return o.Kind == target.OtherVM && o.NodeID == vm.NodeID && strings.Contains(o.Name, vm.Name)
		})
	}
	for _, vm := range mine {
		if listed(s.tag, vm) {
			s.Errorf("vm %q is listed as foreign to its owner", vm.Name)
		}
		if !listed(foreign, vm) {
			s.Errorf("vm %q is not listed to others", vm.Name)
		}
	}
	if !listed(s.tag, theirs[0]) || listed(foreign, theirs[0]) {
		s.Errorf("vm %q of another run is not listed, or listed to its owner", theirs[0].Name)
	}
	if _, err := lister.Others(s.Context(), target.Tag{}); err == nil {
		s.Error("a tag with which anybody's objects could be claimed was taken")
	}
	ended, cancel := context.WithCancel(s.Context())
	cancel()
	if _, err := lister.Others(ended, s.tag); err == nil {
		s.Error("a cancelled call succeeded")
	}
	if got := s.owned(); !slices.Equal(names(got), names(mine)) {
		s.Errorf("looking changed what is owned: %q", names(got))
	}
	s.must(s.target.Delete(s.Context(), foreign, theirs))
	if listed(s.tag, theirs[0]) {
		s.Errorf("vm %q is listed and gone", theirs[0].Name)
	}
}
