package analysis

import (
	"strings"

	"github.com/braggdev/bragg/internal/interval"
)

// trackKey names the intervals of one VM of a workload.
type trackKey struct {
	workload, group, vm string
	prefill             bool
}

// tracks keeps something for each VM of a workload. Its zero value is empty.
type tracks[T any] struct {
	byKey map[trackKey]*tracked[T]
	last  *tracked[T]
}

// tracked knows which track followed it the last time. VMs deliver their intervals in much the same order each second, so that one is
// tried first: comparing names takes a fraction of the time of hashing them.
type tracked[T any] struct {
	key  trackKey
	of   *T
	next *tracked[T]
}

// find returns the track of an interval, which make makes if there is none.
func (s *tracks[T]) find(iv *interval.Interval, make func(trackKey) *T) *T {
	key := trackKey{iv.Workload, iv.Group, iv.VM, iv.Prefill}
	if s.last != nil && s.last.next != nil && s.last.next.key == key {
		s.last = s.last.next
		return s.last.of
	}
	t := s.byKey[key]
	if t == nil {
		key.workload, key.group, key.vm = strings.Clone(key.workload), strings.Clone(key.group), strings.Clone(key.vm)
		t = &tracked[T]{key: key, of: make(key)}
		if s.byKey == nil {
			s.byKey = map[trackKey]*tracked[T]{}
		}
		s.byKey[key] = t
	}
	if s.last != nil {
		s.last.next = t
	}
	s.last = t
	return t.of
}
