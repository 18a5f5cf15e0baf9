package jinja

import (
	"errors"
	"fmt"
	"strings"

	"github.com/braggdev/bragg/internal/jinja/syntax"
)

// machine runs statements. Faults are kept and the run goes on, so that all are found; a used-up limit ends it.
type machine struct {
	limits   Limits
	filters  map[string]filter
	steps    int
	bytes    int
	out      strings.Builder
	spans    []Span
	capture  *strings.Builder // where output goes inside of a block set
	faults   []syntax.Fault
	reported map[int]bool // offsets that have a fault, so that a loop reports it once
	stopped  bool
}

// frame is one scope of names.
type frame struct {
	names  map[string]any
	parent *frame
}

func (f *frame) get(name string) (any, bool) {
	for ; f != nil; f = f.parent {
		if v, ok := f.names[name]; ok {
			return v, true
		}
	}
	return nil, false
}

func (f *frame) child() *frame { return &frame{names: map[string]any{}, parent: f} }

// limitError ends the run.
type limitError struct{ message string }

func (e limitError) Error() string { return e.message }

// endsRun reports whether an error already has its position, or ends the run regardless of it.
func endsRun(err error) bool {
	return errors.As(err, new(*syntax.Fault)) || errors.As(err, new(limitError))
}

// step counts one unit of work.
func (m *machine) step() error {
	if m.steps++; m.steps > m.limits.Steps {
		return limitError{fmt.Sprintf("the template takes more than %d steps", m.limits.Steps)}
	}
	return nil
}

// bytesPerStep is how much text one step may go through.
const bytesPerStep = 64

// work counts steps that the next call of step checks.
func (m *machine) work(steps int) { m.steps += steps }

// workOn counts what going through a value takes.
func (m *machine) workOn(v any) {
	switch v := v.(type) {
	case string:
		m.work(len(v) / bytesPerStep)
	case *list:
		m.work(len(v.items))
	case *dict:
		m.work(len(v.keys))
	}
}

// pay counts memory that a value takes; what is paid is never given back, which bounds all values of a run.
func (m *machine) pay(bytes int) error {
	if bytes < 0 || bytes > m.limits.ValueBytes-m.bytes {
		return limitError{fmt.Sprintf("the values of the template take more than %d MiB", m.limits.ValueBytes>>20)}
	}
	m.bytes += bytes
	return nil
}

// text pays for a new text.
func (m *machine) text(s string) (any, error) { return s, m.pay(len(s)) }

// report keeps a fault; the first one of a place is enough.
func (m *machine) report(where syntax.At, err error) {
	code := "template-value"
	if errors.As(err, new(limitError)) {
		m.stopped = true
		code = "template-limit"
	}
	var inner *syntax.Fault
	if errors.As(err, &inner) {
		where, code = syntax.At{Offset: inner.Offset, Width: inner.Width}, inner.Code
	}
	if m.reported[where.Offset] {
		return
	}
	m.reported[where.Offset] = true
	f := where.Fault(code, err.Error(), "")
	if inner != nil {
		*f = *inner
	}
	m.faults = append(m.faults, *f)
	m.stopped = m.stopped || len(m.faults) >= faultsMax
}

// emit writes output that comes from a place of the template.
func (m *machine) emit(where syntax.At, text string, verbatim bool) error {
	if m.capture != nil {
		if err := m.pay(len(text)); err != nil {
			return err
		}
		m.capture.WriteString(text)
		return nil
	}
	if m.out.Len()+len(text) > m.limits.OutputBytes {
		return limitError{fmt.Sprintf("the rendered text is longer than %d MiB", m.limits.OutputBytes>>20)}
	}
	if text != "" {
		s := Span{Out: m.out.Len(), Source: where.Offset, Verbatim: verbatim}
		if !verbatim {
			s.Width = where.Width
		}
		m.spans = append(m.spans, s)
	}
	m.out.WriteString(text)
	return nil
}

func (m *machine) run(body []syntax.Stmt, scope *frame) {
	for _, s := range body {
		if m.stopped {
			return
		}
		if err := m.step(); err != nil {
			m.report(s.Place(), err)
			return
		}
		if err := m.exec(s, scope); err != nil {
			m.report(s.Place(), err)
		}
	}
}

func (m *machine) exec(s syntax.Stmt, scope *frame) error {
	switch s := s.(type) {
	case syntax.TextStmt:
		return m.emit(s.At, s.Text, true)
	case syntax.OutputStmt:
		v, err := m.value(s.X, scope)
		if fn, ok := v.(function); ok && err == nil {
			return fmt.Errorf("%s is a function; call it with ()", fn.name)
		}
		if err == nil {
			err = m.emit(s.At, str(v), false)
		}
		return err
	case syntax.IfStmt:
		v, err := m.eval(s.Cond, scope)
		if err != nil {
			return err
		}
		if truth(v) {
			m.run(s.Then, scope)
		} else {
			m.run(s.More, scope)
		}
	case syntax.ForStmt:
		return m.loop(s, scope)
	case syntax.SetStmt:
		return m.set(s, scope)
	case syntax.WithStmt:
		inner := scope.child()
		for i, name := range s.Names {
			v, err := m.eval(s.Values[i], scope)
			if err != nil {
				return err
			}
			inner.names[name] = v
		}
		m.run(s.Body, inner)
	}
	return nil
}

func (m *machine) set(s syntax.SetStmt, scope *frame) error {
	var v any
	var err error
	if s.X != nil {
		if v, err = m.eval(s.X, scope); err != nil {
			return err
		}
	} else {
		outer := m.capture
		m.capture = &strings.Builder{}
		m.run(s.Body, scope.child())
		v = m.capture.String()
		m.capture = outer
	}
	if s.Attribute == "" {
		return bind(s.Targets, v, scope)
	}
	target, _ := scope.get(s.Targets[0])
	space, ok := target.(*namespace)
	if !ok {
		return fmt.Errorf("only attributes of a namespace can be set")
	}
	if err := m.pay(32); err != nil {
		return err
	}
	space.attributes.set(s.Attribute, v)
	return nil
}

// bind assigns a value to one name, or its items to several.
func bind(targets []string, v any, scope *frame) error {
	if len(targets) == 1 {
		scope.names[targets[0]] = v
		return nil
	}
	items, ok := v.(*list)
	if !ok || len(items.items) != len(targets) {
		return fmt.Errorf("%s does not have the %d items that are assigned", describeValue(v), len(targets))
	}
	for i, name := range targets {
		scope.names[name] = items.items[i]
	}
	return nil
}

func describeValue(v any) string {
	if l, ok := v.(*list); ok {
		return fmt.Sprintf("a %s of %d", typeName(v), len(l.items))
	}
	return "a value of type " + typeName(v)
}

func (m *machine) loop(s syntax.ForStmt, scope *frame) error {
	source, err := m.eval(s.Iter, scope)
	if err != nil {
		return err
	}
	items, err := m.iterate(source)
	if err != nil {
		return &syntax.Fault{Offset: s.Iter.Place().Offset, Width: s.Iter.Place().Width, Code: "template-value",
			Message: err.Error()}
	}
	if s.Cond != nil {
		if items, err = m.filterLoop(s, items, scope); err != nil {
			return err
		}
	}
	if items.len() == 0 {
		m.run(s.More, scope.child())
		return nil
	}
	for i := 0; i < items.len() && !m.stopped; i++ {
		if err := m.step(); err != nil {
			return err
		}
		inner := scope.child()
		if err := bind(s.Targets, items.item(i), inner); err != nil {
			return err
		}
		inner.names["loop"] = &loopState{index: i, items: items}
		m.run(s.Body, inner)
	}
	return nil
}

// filterLoop keeps the items for which the loop's own condition holds, so that loop.index counts only these.
func (m *machine) filterLoop(s syntax.ForStmt, items sequence, scope *frame) (sequence, error) {
	kept := &list{}
	for i := range items.len() {
		inner := scope.child()
		if err := bind(s.Targets, items.item(i), inner); err != nil {
			return nil, err
		}
		v, err := m.eval(s.Cond, inner)
		if err == nil {
			err = m.step()
		}
		if err != nil {
			return nil, err
		}
		if truth(v) {
			kept.items = append(kept.items, items.item(i))
		}
	}
	return kept, nil
}

// sequence is what a loop goes over.
type sequence interface {
	len() int
	item(i int) any
}

func (l *list) len() int         { return len(l.items) }
func (l *list) item(i int) any   { return l.items[i] }
func (n numbers) len() int       { return int(n.count) }
func (n numbers) item(i int) any { return n.start + int64(i)*n.step }

// iterate returns what a loop, or a filter over many values, goes over.
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
