package jinja

import "fmt"

// sequence is what a loop iterates over.
type sequence interface {
	len() int
	item(i int) any
}

func (l *list) len() int         { return len(l.items) }
func (l *list) item(i int) any   { return l.items[i] }
func (n numbers) len() int       { return int(n.count) }
func (n numbers) item(i int) any { return n.start + int64(i)*n.step }

// iterate returns the values that a loop or a filter iterates over.
func (m *machine) iterate(v any) (sequence, error) {
	switch v := v.(type) {
	case *list:
		return &list{items: v.items}, nil // a copy of the header: appending in the loop does not prolong it
	case numbers:
		return v, nil
	case *dict:
		return &list{items: append([]any(nil), v.keys...)}, m.pay(16 * len(v.keys))
	case string:
		if err := m.pay(20 * len(v)); err != nil {
			return nil, err
		}
		out := &list{}
		for _, r := range v {
			out.items = append(out.items, string(r))
		}
		return out, nil
	}
	return nil, fmt.Errorf("%s cannot be looped over", describeValue(v))
}

// loopState is the name loop inside of a loop.
type loopState struct {
	index int
	items sequence
}

func (l *loopState) attribute(name string) (any, bool) {
	n := l.items.len()
	switch name {
	case "index":
		return int64(l.index + 1), true
	case "index0":
		return int64(l.index), true
	case "revindex":
		return int64(n - l.index), true
	case "revindex0":
		return int64(n - l.index - 1), true
	case "first":
		return l.index == 0, true
	case "last":
		return l.index == n-1, true
	case "length":
		return int64(n), true
	case "previtem":
		if l.index > 0 {
			return l.items.item(l.index - 1), true
		}
		return undefined{"loop.previtem"}, true
	case "nextitem":
		if l.index < n-1 {
			return l.items.item(l.index + 1), true
		}
		return undefined{"loop.nextitem"}, true
	case "cycle":
		return function{"loop.cycle", func(_ *machine, args callArgs) (any, error) {
			if len(args.positional) == 0 {
				return nil, fmt.Errorf("loop.cycle needs values")
			}
			return args.positional[l.index%len(args.positional)], nil
		}}, true
	}
	return nil, false
}

var loopAttributes = []string{"index", "index0", "revindex", "revindex0", "first", "last", "length", "previtem", "nextitem", "cycle"}
