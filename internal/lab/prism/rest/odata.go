package rest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Limits of pages, as v4 has them.
const (
	limitDefault = 50
	limitMax     = 100
)

// Page is what a list request selects.
type Page struct {
	Number, Limit int
	filter        condition
	orders        []order
	fields        []string
}

type order struct {
	path       string
	descending bool
}

// condition reports whether an entity is selected.
type condition func(Object) bool

// ReadPage reads $page, $limit, $filter, $orderby and $select.
func ReadPage(q url.Values) (Page, error) {
	p := Page{Limit: limitDefault}
	for name, to := range map[string]*int{"$page": &p.Number, "$limit": &p.Limit} {
		if text := q.Get(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 0 {
				return p, fmt.Errorf("%s: invalid value %q", name, text)
			}
			*to = n
		}
	}
	if p.Limit < 1 || p.Limit > limitMax {
		return p, fmt.Errorf("$limit: %d, want 1 to %d", p.Limit, limitMax)
	}
	if text := q.Get("$filter"); text != "" {
		var err error
		if p.filter, err = parseFilter(text); err != nil {
			return p, fmt.Errorf("$filter: %w", err)
		}
	}
	for text := range strings.SplitSeq(q.Get("$orderby"), ",") {
		if fields := strings.Fields(text); len(fields) > 0 {
			p.orders = append(p.orders, order{fields[0], len(fields) > 1 && strings.EqualFold(fields[1], "desc")})
		}
	}
	for text := range strings.SplitSeq(q.Get("$select"), ",") {
		if text = strings.TrimSpace(text); text != "" && text != "*" {
			p.fields = append(p.fields, text)
		}
	}
	return p, nil
}

// Apply returns the entities of the page, and how many the filter selects.
func (p Page) Apply(all []Object) (page []Object, total int) {
	selected := all
	if p.filter != nil {
		selected = slices.DeleteFunc(slices.Clone(all), func(o Object) bool { return !p.filter(o) })
	}
	if len(p.orders) > 0 {
		selected = slices.Clone(selected)
		slices.SortStableFunc(selected, func(a, b Object) int {
			for _, o := range p.orders {
				c := compare(lookup(a, o.path), lookup(b, o.path))
				if o.descending {
					c = -c
				}
				if c != 0 {
					return c
				}
			}
			return 0
		})
	}
	total = len(selected)
	from := min(total, p.Number*p.Limit)
	page = selected[from:min(total, from+p.Limit)]
	if len(p.fields) > 0 {
		for i, o := range page {
			page[i] = project(o, p.fields)
		}
	}
	return page, total
}

// project keeps the selected fields, and what identifies the entity.
func project(o Object, fields []string) Object {
	out := Object{}
	for k, v := range o {
		if strings.HasPrefix(k, "$") || k == "extId" || slices.Contains(fields, k) {
			out[k] = v
		}
	}
	return out
}

// lookup follows a path such as "cluster/extId".
func lookup(o Object, path string) any {
	var v any = o
	for part := range strings.SplitSeq(path, "/") {
		m, ok := v.(Object)
		if !ok {
			return nil
		}
		v = m[part]
	}
	return v
}

// compare orders numbers as numbers and everything else as text; nil is first.
func compare(a, b any) int {
	x, okX := number(a)
	y, okY := number(b)
	if okX && okY {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(text(a), text(b))
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	}
	encoded, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return strings.Trim(string(encoded), `"`)
}
