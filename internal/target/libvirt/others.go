package libvirt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/target"
)

// Others lists the domains of all nodes, and the volumes of the pools that VMs lie in, that do not carry the tag.
func (t *Target) Others(ctx context.Context, tag target.Tag) ([]target.Other, error) {
	if err := errors.Join(tag.Check(), t.usable(ctx)); err != nil {
		return nil, err
	}
	mark := tag.Mark()
	found, keys := make([][]target.Other, len(t.nodes)), make([]string, len(t.nodes))
	volumes := make([][]target.Other, len(t.nodes))
	err := target.Each(ctx, len(t.nodes), func(i int) error {
		n := t.nodes[i]
		domains, err := n.sights(ctx)
		for _, d := range domains {
			if why := whyNot(d.mark(), mark); why != "" {
				found[i] = append(found[i], target.Other{Kind: target.OtherVM, Name: d.Name, NodeID: n.id, Why: why})
			}
		}
		if err != nil {
			return err
		}
		p, err := n.readPool(ctx, n.pool)
		if err != nil {
			return err
		}
		keys[i] = t.storage(n, p)
		volumes[i], err = n.otherVolumes(ctx, p, mark)
		return err
	})
	all := slices.Concat(found...)
	for i := range volumes {
		if !slices.Contains(keys[:i], keys[i]) { // what nodes share is listed once
			all = append(all, volumes[i]...)
		}
	}
	slices.SortStableFunc(all, func(a, b target.Other) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	return all, err
}

// whyNot says why something with this mark is left alone by whoever has another one, "" when it is his own.
func whyNot(mark, own string) string {
	switch mark {
	case own:
		return ""
	case "":
		return target.WhyUnmarked
	}
	return target.WhyAnother
}

func (n *node) otherVolumes(ctx context.Context, p pool, mark string) ([]target.Other, error) {
	text, err := n.poolText(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("list volumes: %w", err)
	}
	var all []target.Other
	for _, name := range namesOf(text) {
		o, _ := parseVolumeName(name)
		if why := whyNot(o.mark, mark); why != "" {
			all = append(all, target.Other{Kind: target.OtherVolume, Name: name, Why: why})
		}
	}
	return all, nil
}

// namesOf reads the names of all volumes from the output of virsh vol-list: a name and a path on each line. A name may hold
// blanks, and no slash.
func namesOf(text []byte) []string {
	var names []string
	for line := range strings.Lines(string(text)) {
		name, _, ok := strings.Cut(line, " /")
		if fields := strings.Fields(line); !ok && len(fields) > 0 {
			name = fields[0] // a pool whose volumes have no path
		}
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}
