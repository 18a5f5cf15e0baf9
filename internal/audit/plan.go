package audit

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// plan is what rules read of plan.json. What is missing there stays empty, and rules then say nothing.
type plan struct {
	Groups []struct {
		Name         string `json:"name"`
		RAMBytes     int64  `json:"ram_bytes"`
		CountFinal   int    `json:"count_final"`
		TouchedBytes int64  `json:"touched_bytes"`
	} `json:"groups"`
	Workloads []planWorkload `json:"workloads"`
	Target    struct {
		Nodes []struct {
			ID   string `json:"id"`
			Name string `json:"name"`
		} `json:"nodes"`
	} `json:"target"`
}

type planWorkload struct {
	Name    string    `json:"name"`
	Group   string    `json:"vm_group"`
	Load    *planLoad `json:"load"`
	Prefill *planLoad `json:"prefill"`
}

type planLoad struct {
	Jobs []struct {
		Pattern string `json:"pattern"`
	} `json:"jobs"`
	Extents []extent `json:"extents"`
	Command string   `json:"command"`
}

type extent struct {
	Device string `json:"device"`
	Offset int64  `json:"offset"`
	Length int64  `json:"length"`
	Writes bool   `json:"writes"`
}

func (in *Input) plan() plan {
	var p plan
	// A plan that cannot be read is no finding about numbers; the report says it.
	_ = json.Unmarshal(in.Plan, &p)
	return p
}

// reads tells whether any job reads.
func (l *planLoad) reads() bool {
	for _, j := range l.Jobs {
		if strings.Contains(j.Pattern, "read") || strings.Contains(j.Pattern, "rw") {
			return true
		}
	}
	return false
}

// direct tells whether the load bypasses the page cache, as far as its command says.
func (l *planLoad) direct() bool {
	return strings.Contains(l.Command, "direct=1") || strings.Contains(l.Command, "odirect=1")
}

// bytes is the number of distinct bytes of the extents, which may overlap.
func bytes(list []extent) int64 {
	var n int64
	for _, e := range merged(list) {
		n += e.Length
	}
	return n
}

// merged sorts extents by device and offset and joins those that touch.
func merged(list []extent) []extent {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b extent) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Offset, b.Offset))
	})
	var out []extent
	for _, e := range list {
		if n := len(out) - 1; n >= 0 && out[n].Device == e.Device && e.Offset <= out[n].Offset+out[n].Length {
			out[n].Length = max(out[n].Length, e.Offset+e.Length-out[n].Offset)
			continue
		}
		out = append(out, e)
	}
	return out
}

// without returns what of list is not in taken.
func without(list, taken []extent) []extent {
	var out []extent
	taken = merged(taken)
	for _, e := range merged(list) {
		at, end := e.Offset, e.Offset+e.Length
		for _, t := range taken {
			if t.Device != e.Device || t.Offset+t.Length <= at || t.Offset >= end {
				continue
			}
			if t.Offset > at {
				out = append(out, extent{Device: e.Device, Offset: at, Length: t.Offset - at})
			}
			at = t.Offset + t.Length
		}
		if at < end {
			out = append(out, extent{Device: e.Device, Offset: at, Length: end - at})
		}
	}
	return out
}
