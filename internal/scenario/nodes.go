package scenario

import (
	"fmt"
	"strings"

	"github.com/braggdev/bragg/internal/jinja"
)

// NodeSlice selects nodes of a target by index, in X-Ray's syntax: "0", ":n-1", "0, 2:4", "all".
//
// The parts between commas are Python slices, start:stop:step, or single indices. n is the number of nodes; the numbers may
// be sums, differences, products and quotients with brackets, where / rounds down. Negative numbers count from the end. A
// slice is cut at the ends of the list; a single index outside of it is an error.
type NodeSlice struct{ parts []nodePart }

// nodePart is one part between commas: one bound for an index, two or three for a slice. A nil bound is omitted.
type nodePart struct {
	text   string
	bounds []*nodeExpr
}

// nodeExpr is a number, n, or an operation on two of them.
type nodeExpr struct {
	op          byte // '0' a number, 'n', or one of + - * /
	value       int
	left, right *nodeExpr
}

// Bounds of a node slice: longer than any real one, and arithmetic below nodeNumberMax cannot overflow.
const (
	nodeTextMax   = 500
	nodeDepthMax  = 20
	nodeNumberMax = 1_000_000
	nodeCountMax  = 100_000
)

// ParseNodes reads a node slice. Empty text means all nodes.
func ParseNodes(text string) (NodeSlice, error) {
	var s NodeSlice
	if len(text) > nodeTextMax {
		return s, fmt.Errorf("nodes: longer than %d characters", nodeTextMax)
	}
	if strings.TrimSpace(text) == "" {
		text = "all"
	}
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		p := nodePart{text: part}
		if part == "all" {
			p.bounds = []*nodeExpr{nil, nil}
			s.parts = append(s.parts, p)
			continue
		}
		if part == "" {
			return NodeSlice{}, fmt.Errorf("nodes %q: empty item between commas", text)
		}
		fields := strings.Split(part, ":")
		if len(fields) > 3 {
			return NodeSlice{}, fmt.Errorf("nodes %q: %q has more than start:stop:step", text, part)
		}
		for _, field := range fields {
			e, err := parseNodeExpr(field)
			if err != nil {
				return NodeSlice{}, fmt.Errorf("nodes %q: %w", text, err)
			}
			p.bounds = append(p.bounds, e)
		}
		if len(fields) == 1 && p.bounds[0] == nil {
			return NodeSlice{}, fmt.Errorf("nodes %q: no index", text)
		}
		s.parts = append(s.parts, p)
	}
	return s, nil
}

// Select returns the indices that the slice selects among n nodes, in the order of the slice, each once.
func (s NodeSlice) Select(n int) ([]int, error) {
	if n < 0 || n > nodeCountMax {
		return nil, fmt.Errorf("select nodes: %d nodes", n)
	}
	out := []int{}
	seen := make([]bool, n)
	for _, p := range s.parts {
		indices, err := p.indices(n)
		if err != nil {
			return nil, err
		}
		for _, i := range indices {
			if !seen[i] {
				seen[i] = true
				out = append(out, i)
			}
		}
	}
	return out, nil
}

// SelectNodes returns the indices that text selects among n nodes.
func SelectNodes(text string, n int) ([]int, error) {
	s, err := ParseNodes(text)
	if err != nil {
		return nil, err
	}
	return s.Select(n)
}

// MissingNode is the error of an index that is none of n nodes.
func MissingNode(index, n int) error {
	if n <= 1 {
		return fmt.Errorf("no node %d among %d", index, n)
	}
	return fmt.Errorf("no node %d among %d, 0 to %d", index, n, n-1)
}

func (p nodePart) indices(n int) ([]int, error) {
	var given [3]*int
	for i, e := range p.bounds {
		if e == nil {
			continue
		}
		v, err := e.eval(n)
		if err != nil {
			return nil, fmt.Errorf("nodes %q: %w", p.text, err)
		}
		given[i] = &v
	}
	if len(p.bounds) == 1 {
		i := *given[0]
		if i < 0 {
			i += n
		}
		if i < 0 || i >= n {
			return nil, fmt.Errorf("nodes %q: %w", p.text, MissingNode(*given[0], n))
		}
		return []int{i}, nil
	}
	step := 1
	if given[2] != nil {
		step = *given[2]
	}
	if step == 0 {
		return nil, fmt.Errorf("nodes %q: the step is 0", p.text)
	}
	var out []int
	start, stop := jinja.SliceEnds(given[0], given[1], step, n)
	for i := start; (step > 0 && i < stop) || (step < 0 && i > stop); i += step {
		out = append(out, i)
	}
	return out, nil
}

func (e *nodeExpr) eval(n int) (int, error) {
	switch e.op {
	case '0':
		return e.value, nil
	case 'n':
		return n, nil
	}
	a, err := e.left.eval(n)
	if err != nil {
		return 0, err
	}
	b, err := e.right.eval(n)
	if err != nil {
		return 0, err
	}
	var v int
	switch e.op {
	case '+':
		v = a + b
	case '-':
		v = a - b
	case '*':
		v = a * b
	case '/':
		if b == 0 {
			return 0, fmt.Errorf("division by zero")
		}
		v = a / b
		if a%b != 0 && (a < 0) != (b < 0) {
			v-- // rounds down, as Python does, where Go rounds towards zero
		}
	}
	if v < -nodeNumberMax || v > nodeNumberMax {
		return 0, fmt.Errorf("%d is out of range", v)
	}
	return v, nil
}
