package jinja

import (
	"errors"
	"fmt"
	"strings"

	"github.com/braggdev/bragg/internal/jinja/syntax"
)

// renderer runs statements. It keeps faults and continues, so that all are found; an exhausted limit ends it.
type renderer struct {
	machine
	out      strings.Builder
	spans    []Span
	capture  *strings.Builder // receives the output inside a block set
	faults   []syntax.Fault
	reported map[int]bool // offsets that have a fault, so that a loop reports it once
	stopped  bool
}

// report keeps a fault, only the first for each place.
func (r *renderer) report(where syntax.At, err error) {
	code := "template-value"
	if errors.As(err, new(limitError)) {
		r.stopped = true
		code = "template-limit"
	}
	var inner *syntax.Fault
	if errors.As(err, &inner) {
		where, code = syntax.At{Offset: inner.Offset, Width: inner.Width}, inner.Code
	}
	if r.reported[where.Offset] {
		return
	}
	r.reported[where.Offset] = true
	f := where.Fault(code, err.Error(), "")
	if inner != nil {
		*f = *inner
	}
	r.faults = append(r.faults, *f)
	r.stopped = r.stopped || len(r.faults) >= faultsMax
}

// emit writes output that comes from a place of the template.
func (r *renderer) emit(where syntax.At, text string, verbatim bool) error {
	if r.capture != nil {
		if err := r.pay(len(text)); err != nil {
			return err
		}
		r.capture.WriteString(text)
		return nil
	}
	if r.out.Len()+len(text) > r.limits.OutputBytes {
		return limitError{fmt.Sprintf("the rendered text is longer than %d MiB", r.limits.OutputBytes>>20)}
	}
	if text != "" {
		s := Span{Out: r.out.Len(), Source: where.Offset, Verbatim: verbatim}
		if !verbatim {
			s.Width = where.Width
		}
		r.spans = append(r.spans, s)
	}
	r.out.WriteString(text)
	return nil
}

func (r *renderer) run(body []syntax.Stmt, scope *frame) {
	for _, s := range body {
		if r.stopped {
			return
		}
		if err := r.step(); err != nil {
			r.report(s.Place(), err)
			return
		}
		if err := r.exec(s, scope); err != nil {
			r.report(s.Place(), err)
		}
	}
}

func (r *renderer) exec(s syntax.Stmt, scope *frame) error {
	switch s := s.(type) {
	case syntax.TextStmt:
		return r.emit(s.At, s.Text, true)
	case syntax.OutputStmt:
		v, err := r.value(s.X, scope)
		if fn, ok := v.(function); ok && err == nil {
			return fmt.Errorf("%s is a function; call it with ()", fn.name)
		}
		if err == nil {
			err = r.emit(s.At, str(v), false)
		}
		return err
	case syntax.IfStmt:
		v, err := r.eval(s.Cond, scope)
		if err != nil {
			return err
		}
		if truth(v) {
			r.run(s.Then, scope)
		} else {
			r.run(s.More, scope)
		}
	case syntax.ForStmt:
		return r.loop(s, scope)
	case syntax.SetStmt:
		return r.set(s, scope)
	case syntax.WithStmt:
		inner := scope.child()
		for i, name := range s.Names {
			v, err := r.eval(s.Values[i], scope)
			if err != nil {
				return err
			}
			inner.names[name] = v
		}
		r.run(s.Body, inner)
	}
	return nil
}

func (r *renderer) set(s syntax.SetStmt, scope *frame) error {
	var v any
	var err error
	if s.X != nil {
		if v, err = r.eval(s.X, scope); err != nil {
			return err
		}
	} else {
		outer := r.capture
		r.capture = &strings.Builder{}
		r.run(s.Body, scope.child())
		v = r.capture.String()
		r.capture = outer
	}
	if s.Attribute == "" {
		return bind(s.Targets, v, scope)
	}
	target, _ := scope.get(s.Targets[0])
	space, ok := target.(*namespace)
	if !ok {
		return fmt.Errorf("only attributes of a namespace can be set")
	}
	if err := r.pay(32); err != nil {
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

func (r *renderer) loop(s syntax.ForStmt, scope *frame) error {
	source, err := r.eval(s.Iter, scope)
	if err != nil {
		return err
	}
	items, err := r.iterate(source)
	if err != nil {
		return &syntax.Fault{Offset: s.Iter.Place().Offset, Width: s.Iter.Place().Width, Code: "template-value",
			Message: err.Error()}
	}
	if s.Cond != nil {
		if items, err = r.filterLoop(s, items, scope); err != nil {
			return err
		}
	}
	if items.len() == 0 {
		r.run(s.More, scope.child())
		return nil
	}
	for i := 0; i < items.len() && !r.stopped; i++ {
		if err := r.step(); err != nil {
			return err
		}
		inner := scope.child()
		if err := bind(s.Targets, items.item(i), inner); err != nil {
			return err
		}
		inner.names["loop"] = &loopState{index: i, items: items}
		r.run(s.Body, inner)
	}
	return nil
}

// filterLoop keeps the items that satisfy the loop's condition, so that loop.index counts only these.
func (r *renderer) filterLoop(s syntax.ForStmt, items sequence, scope *frame) (sequence, error) {
	kept := &list{}
	for i := range items.len() {
		inner := scope.child()
		if err := bind(s.Targets, items.item(i), inner); err != nil {
			return nil, err
		}
		v, err := r.eval(s.Cond, inner)
		if err == nil {
			err = r.step()
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
