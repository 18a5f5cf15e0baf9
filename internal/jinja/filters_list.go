package jinja

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/jinja/syntax"
)

// items returns the items of x as a new list, and pays for it.
func (m *machine) items(x any) ([]any, error) {
	seq, err := m.iterate(x)
	if err != nil {
		return nil, err
	}
	if err := m.payTimes(16, int64(seq.len())); err != nil {
		return nil, err
	}
	m.work(seq.len() / 4)
	out := make([]any, seq.len())
	for i := range out {
		out[i] = seq.item(i)
	}
	return out, nil
}

func filterList(m *machine, x any, _ callArgs) (any, error) {
	items, err := m.items(x)
	return &list{items: items}, err
}

func filterFirst(m *machine, x any, _ callArgs) (any, error) { return m.end(x, 0) }
func filterLast(m *machine, x any, _ callArgs) (any, error)  { return m.end(x, -1) }

func (m *machine) end(x any, index int64) (any, error) {
	if d, ok := x.(*dict); ok {
		x = &list{items: d.keys}
	}
	v, err := item(x, index)
	if err != nil {
		return nil, fmt.Errorf("%s has no items", describeValue(x))
	}
	return v, nil
}

func filterItems(m *machine, x any, _ callArgs) (any, error) {
	d, ok := x.(*dict)
	if !ok {
		return nil, fmt.Errorf("%s has no keys", describeValue(x))
	}
	out := &list{}
	for _, k := range d.keys {
		out.items = append(out.items, &list{items: []any{k, d.values[k]}, tuple: true})
	}
	return out, m.pay(64 * len(d.keys))
}

func filterJoin(m *machine, x any, args callArgs) (any, error) {
	a, err := args.bind(param{"d", ""}, param{"attribute", nil})
	if err != nil {
		return nil, err
	}
	items, err := m.items(x)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	for i, v := range items {
		if a["attribute"] != nil {
			if v, err = item(v, a["attribute"]); err != nil {
				return nil, err
			}
		}
		if i > 0 {
			b.WriteString(str(a["d"]))
		}
		b.WriteString(str(v))
		if b.Len() > m.limits.ValueBytes-m.paid {
			break // the payment below fails
		}
	}
	return m.text(b.String())
}

func filterReverse(m *machine, x any, _ callArgs) (any, error) {
	items, err := m.items(x)
	if err != nil {
		return nil, err
	}
	slices.Reverse(items)
	if _, ok := x.(string); ok {
		var b strings.Builder
		for _, v := range items {
			b.WriteString(str(v))
		}
		return m.text(b.String())
	}
	return &list{items: items}, nil
}

func filterSum(m *machine, x any, args callArgs) (any, error) {
	a, err := args.bind(param{"attribute", nil}, param{"start", int64(0)})
	if err != nil {
		return nil, err
	}
	items, err := m.items(x)
	total := a["start"]
	for _, v := range items {
		if err == nil && a["attribute"] != nil {
			v, err = item(v, a["attribute"])
		}
		if err == nil {
			total, err = m.binary("+", total, v)
		}
		if err != nil {
			return nil, err
		}
	}
	return total, err
}

// extreme is max or min: the first item that compares as sign with all others.
func extreme(sign int) filter {
	return func(m *machine, x any, args callArgs) (any, error) {
		items, err := m.items(x)
		if err != nil {
			return nil, err
		}
		if len(items) == 0 {
			return nil, fmt.Errorf("%s has no items", describeValue(x))
		}
		best := items[0]
		for _, v := range items[1:] {
			c, err := m.order(foldCase(v), foldCase(best), 0)
			if err != nil {
				return nil, err
			}
			if c*sign > 0 {
				best = v
			}
		}
		return best, nil
	}
}

// foldCase makes texts that differ only in case equal, as Jinja orders them.
func foldCase(v any) any {
	if s, ok := v.(string); ok {
		return strings.ToLower(s)
	}
	return v
}

func filterSort(m *machine, x any, args callArgs) (any, error) {
	a, err := args.bind(param{"reverse", false}, param{"case_sensitive", false}, param{"attribute", nil})
	if err != nil {
		return nil, err
	}
	items, err := m.items(x)
	if err != nil {
		return nil, err
	}
	key := func(v any) any {
		if a["attribute"] != nil {
			inner, e := item(v, a["attribute"])
			if e != nil && err == nil {
				err = e
			}
			v = inner
		}
		if truth(a["case_sensitive"]) {
			return v
		}
		return foldCase(v)
	}
	sign := 1
	if truth(a["reverse"]) {
		sign = -1
	}
	slices.SortStableFunc(items, func(u, v any) int {
		c, e := m.order(key(u), key(v), 0)
		if e != nil && err == nil {
			err = e
		}
		return sign * c
	})
	return &list{items: items}, err
}

// filterUnique keeps the first of equal items; texts that differ only in case are equal, as in Jinja.
func filterUnique(m *machine, x any, _ callArgs) (any, error) {
	items, err := m.items(x)
	if err != nil {
		return nil, err
	}
	out := &list{}
	seen := map[any]bool{}
	for _, v := range items {
		if !hashable(v) {
			return nil, fmt.Errorf("%s cannot be compared for this", describeValue(v))
		}
		key := normalKey(v)
		if s, ok := key.(string); ok {
			key = strings.ToLower(s)
		}
		if !seen[key] {
			seen[key] = true
			out.items = append(out.items, v)
		}
	}
	return out, m.pay(32 * len(items))
}

// filterBatch cuts a list into lists of a given length.
func filterBatch(m *machine, x any, args callArgs) (any, error) {
	a, err := args.bind(param{"linecount", noDefault}, param{"fill_with", nil})
	if err != nil {
		return nil, err
	}
	n, err := whole(a["linecount"], "linecount")
	if err != nil {
		return nil, err
	}
	items, err := m.items(x)
	if err != nil {
		return nil, err
	}
	if n < 1 || n > 10_000 {
		return nil, fmt.Errorf("the length of a batch is %d", n)
	}
	out := &list{}
	for chunk := range slices.Chunk(items, int(n)) {
		chunk = slices.Clone(chunk)
		for a["fill_with"] != nil && len(chunk) < int(n) {
			chunk = append(chunk, a["fill_with"])
		}
		out.items = append(out.items, &list{items: chunk})
	}
	return out, m.pay(16 * (len(items) + int(n)))
}

func filterDictsort(m *machine, x any, _ callArgs) (any, error) {
	d, ok := x.(*dict)
	if !ok {
		return nil, fmt.Errorf("%s has no keys", describeValue(x))
	}
	keys, err := filterSort(m, &list{items: d.keys}, callArgs{})
	if err != nil {
		return nil, err
	}
	out := &list{}
	for _, k := range keys.(*list).items {
		out.items = append(out.items, &list{items: []any{k, d.values[k]}, tuple: true})
	}
	return out, m.pay(64 * len(d.keys))
}

// filterMap applies a filter, or takes an attribute, of every item.
func filterMap(m *machine, x any, args callArgs) (any, error) {
	items, err := m.items(x)
	if err != nil {
		return nil, err
	}
	attribute, byAttribute := args.named["attribute"]
	name := ""
	if !byAttribute {
		if len(args.positional) == 0 {
			return nil, fmt.Errorf("needs the name of a filter, or attribute=…")
		}
		name = str(args.positional[0])
		if _, ok := m.filters[name]; !ok || name == "map" {
			return nil, fmt.Errorf("unknown filter %q", syntax.Shorten(name))
		}
		args.positional = args.positional[1:]
	}
	for i, v := range items {
		if byAttribute {
			items[i], err = item(v, attribute)
		} else {
			items[i], err = m.applyFilter(name, v, args)
		}
		if err == nil {
			err = m.step()
		}
		if err != nil {
			return nil, err
		}
	}
	return &list{items: items}, nil
}

// filterSelect keeps the items that pass a test, or that fail it. Without a test, it selects by truth.
func filterSelect(keep bool) filter {
	return func(m *machine, x any, args callArgs) (any, error) {
		items, err := m.items(x)
		if err != nil {
			return nil, err
		}
		check := func(_ *machine, v any, _ callArgs) (any, error) { return truth(v), nil }
		if len(args.positional) > 0 {
			name := str(args.positional[0])
			t, ok := testTable[name]
			if !ok {
				return nil, fmt.Errorf("unknown test %q", syntax.Shorten(name))
			}
			check, args.positional = t, args.positional[1:]
		}
		out := &list{}
		for _, v := range items {
			passes, err := check(m, v, args)
			if err == nil {
				err = m.step()
			}
			if err != nil {
				return nil, err
			}
			if truth(passes) == keep {
				out.items = append(out.items, v)
			}
		}
		return out, nil
	}
}

// filterJSON writes JSON with a blank after every comma and colon, as Jinja does.
func filterJSON(m *machine, x any, _ callArgs) (any, error) {
	var b strings.Builder
	if err := writeJSON(&b, x, 0); err != nil {
		return nil, err
	}
	return m.text(b.String())
}

func writeJSON(b *strings.Builder, v any, depth int) error {
	if depth > 8 || b.Len() > reprBytesMax {
		return fmt.Errorf("the value is too large for JSON")
	}
	switch v := v.(type) {
	case nil, bool, int64, float64, string:
		text, err := json.Marshal(v)
		if f, ok := v.(float64); ok && err == nil {
			text = []byte(reprFloat(f))
		}
		b.Write(text)
		return err
	case *list:
		b.WriteString("[")
		for i, item := range v.items {
			if i > 0 {
				b.WriteString(", ")
			}
			if err := writeJSON(b, item, depth+1); err != nil {
				return err
			}
		}
		b.WriteString("]")
		return nil
	case *dict:
		b.WriteString("{")
		for i, k := range v.keys {
			if i > 0 {
				b.WriteString(", ")
			}
			if err := writeJSON(b, str(k), depth+1); err != nil {
				return err
			}
			b.WriteString(": ")
			if err := writeJSON(b, v.values[k], depth+1); err != nil {
				return err
			}
		}
		b.WriteString("}")
		return nil
	}
	return fmt.Errorf("%s cannot be written as JSON", describeValue(v))
}
