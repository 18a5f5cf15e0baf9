package verb

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/scenario"
)

// Nodes is an argument that names nodes by a Python-style slice. A bare number is accepted too.
type Nodes string

// Argument describes one argument of a Kind.
type Argument struct {
	Name     string
	Type     string // "text", "integer", "number", "yes/no", "seconds", "minutes", "nodes", "list of text", "mapping", "steps"
	Required bool
	Default  string // as written in a scenario; "" means not given
	Doc      string
	// Refers is the kind of thing that the text names: "group", "workload", "file" or "".
	Refers string
	// Secret values are never printed or recorded.
	Secret bool

	index  int
	scale  scaling
	unit   time.Duration
	values []string
}

// scaling is how a duration shrinks in a rehearsal.
type scaling string

const (
	scaleNone    scaling = ""
	scaleRuntime scaling = "runtime" // of a workload: at least 3 s
	scaleWait    scaling = "wait"    // at least 1 s
	scaleGap     scaling = "gap"     // spread of starts: no floor
	scaleWindow  scaling = "window"  // of a judgement: at least 20 s
	scaleTimeout scaling = "timeout" // at least five minutes, because the awaited operation does not shrink as much
)

// floor returns the minimum of a duration in a rehearsal.
func (s scaling) floor() time.Duration {
	switch s {
	case scaleRuntime:
		return 3 * time.Second
	case scaleWait:
		return time.Second
	case scaleWindow:
		return SettlingWindowMin
	case scaleTimeout:
		return 5 * time.Minute
	}
	return 0
}

// apply shrinks d by factor, but not below the floor. A duration below its floor stays unchanged.
func (s scaling) apply(d time.Duration, factor float64) time.Duration {
	if s == scaleNone || factor >= 1 || d <= 0 {
		return d
	}
	short := max(time.Duration(float64(d)*factor), s.floor())
	return min(d, short.Round(time.Millisecond))
}

// Arguments lists the arguments of k in the order of its fields.
func (k Kind) Arguments() []Argument {
	t := reflect.TypeOf(k.New()).Elem()
	var out []Argument
	for i := range t.NumField() {
		f := t.Field(i)
		tag, ok := f.Tag.Lookup("arg")
		if !ok {
			continue
		}
		name, flags, _ := strings.Cut(tag, ",")
		a := Argument{
			Name: name, Required: flags == "required", Default: f.Tag.Get("default"), Doc: f.Tag.Get("doc"),
			Refers: f.Tag.Get("of"), Secret: f.Tag.Get("secret") == "true", index: i, scale: scaling(f.Tag.Get("scale")), unit: time.Second,
		}
		if v := f.Tag.Get("values"); v != "" {
			a.values = strings.Split(v, ",")
		}
		if f.Tag.Get("unit") == "min" {
			a.unit = time.Minute
		}
		a.Type = typeName(f.Type, a.unit)
		out = append(out, a)
	}
	return out
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	nodesType    = reflect.TypeFor[Nodes]()
	blocksType   = reflect.TypeFor[scenario.Blocks]()
)

func typeName(t reflect.Type, unit time.Duration) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == durationType && unit == time.Minute:
		return "minutes"
	case t == durationType:
		return "seconds"
	case t == nodesType:
		return "nodes"
	case t == blocksType:
		return "steps"
	}
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "yes/no"
	case reflect.Int:
		return "integer"
	case reflect.Float64:
		return "number"
	case reflect.Slice:
		return "list of text"
	case reflect.Map:
		return "mapping"
	}
	panic(fmt.Sprintf("argument type %v is not supported", t)) // a bug in the catalog, found by its registry test
}

// Problems collects the problems of one call. Every problem has the position of its argument.
type Problems struct {
	List     *diag.List
	Scenario *scenario.Scenario // fills in the source lines
	Call     scenario.Call
}

// Errorf reports an error at argument arg, or at the call when arg is "" or was not given.
func (p *Problems) Errorf(arg, code, format string, args ...any) {
	p.add(diag.SeverityError, arg, code, "", fmt.Sprintf(format, args...))
}

// Warnf reports a warning in the same way.
func (p *Problems) Warnf(arg, code, format string, args ...any) {
	p.add(diag.SeverityWarning, arg, code, "", fmt.Sprintf(format, args...))
}

// Hint reports an error with a hint on how to fix it.
func (p *Problems) Hint(arg, code, hint, message string) {
	p.add(diag.SeverityError, arg, code, hint, message)
}

func (p *Problems) add(severity diag.Severity, arg, code, hint, message string) {
	d := diag.Diagnostic{Code: code, Severity: severity, Pos: p.Call.Pos, Width: p.Call.Width,
		Message: message, Hint: hint}
	rendered := p.Call.RenderedLine
	for _, a := range p.Call.Args {
		if arg == "" || a.Name != arg {
			continue
		}
		if a.ValuePos.Line != 0 {
			d.Pos, d.Width, rendered = a.ValuePos, a.Width, a.RenderedLine
		} else if a.Pos.Line != 0 {
			d.Pos, d.Width = a.Pos, len(a.Name)
		}
	}
	p.List.Add(p.Scenario.Point(d, rendered))
}

// nameProblem reports at the name of an argument instead of its value.
func (p *Problems) nameProblem(a scenario.Argument, code, hint, message string) {
	pos := a.Pos
	if pos.Line == 0 {
		pos = p.Call.Pos
	}
	d := diag.Diagnostic{Code: code, Pos: pos, Width: len(a.Name), Message: message, Hint: hint}
	p.List.Add(p.Scenario.Point(d, a.RenderedLine))
}

// Bind creates a step of a kind from the arguments of call; durations shrink by factor. It reports all problems; the step is
// usable only if there were none.
func (k Kind) Bind(call scenario.Call, factor float64, problems *Problems) Step {
	step := k.New()
	fields := reflect.ValueOf(step).Elem()
	arguments := k.Arguments()
	given := map[string]bool{}
	for _, written := range call.Args {
		i := slices.IndexFunc(arguments, func(a Argument) bool { return a.Name == written.Name })
		if i < 0 {
			reportUnknownArgument(problems, k, written, arguments)
			continue
		}
		if written.Value == nil { // "key:" without a value counts as not given
			continue
		}
		given[written.Name] = true
		if err := setField(fields.Field(arguments[i].index), arguments[i], written.Value, factor); err != nil {
			hint := ""
			if text, ok := written.Value.(string); ok && isNumber(text) {
				hint = "write it without quotes"
			}
			problems.Hint(written.Name, "argument-type", hint, fmt.Sprintf("%s of %s %v", written.Name, k.Name, err))
		}
	}
	for _, a := range arguments {
		switch {
		case given[a.Name]:
		case a.Required:
			problems.Errorf("", "missing-argument", "%s needs %s", k.Name, a.Name)
		case a.Default != "":
			if err := setField(fields.Field(a.index), a, defaultValue(a), factor); err != nil {
				panic(fmt.Sprintf("default of %s of %s %v", a.Name, k.Name, err))
			}
		}
	}
	return step
}

func reportUnknownArgument(p *Problems, kind Kind, written scenario.Argument, arguments []Argument) {
	names := make([]string, len(arguments))
	for i, a := range arguments {
		names[i] = a.Name
	}
	hint := fmt.Sprintf("%s takes %s", kind.Name, strings.Join(names, ", "))
	if len(names) == 0 {
		hint = kind.Name + " takes no argument"
	}
	near := diag.Nearest(written.Name, names)
	for _, name := range names {
		if near == "" && written.Name != "" && strings.HasPrefix(name, written.Name) {
			near = name
		}
	}
	if near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	p.nameProblem(written, "unknown-argument", hint, fmt.Sprintf("%s has no argument %q", kind.Name, written.Name))
}

// defaultValue reads the text of a default tag as the value that a scenario would hold.
func defaultValue(a Argument) any {
	switch a.Type {
	case "yes/no":
		return a.Default == "true"
	case "integer", "number", "seconds", "minutes":
		v, err := strconv.ParseFloat(a.Default, 64)
		if err != nil {
			panic(fmt.Sprintf("default %q of %s is not a number", a.Default, a.Name))
		}
		return v
	}
	return a.Default
}

// setField stores value in the field. Types are strict: text is not converted to a number, nor a number to text. Exceptions: a
// number is accepted as a name, and a float without a fraction as an integer.
func setField(field reflect.Value, a Argument, value any, factor float64) error {
	if field.Kind() == reflect.Pointer {
		field.Set(reflect.New(field.Type().Elem()))
		field = field.Elem()
	}
	switch a.Type {
	case "text", "nodes":
		return setText(field, a, value)
	case "yes/no":
		b, ok := value.(bool)
		if !ok {
			return wrongType("true or false", value)
		}
		field.SetBool(b)
	case "integer":
		n, err := number(value)
		if err != nil || n != math.Trunc(n) || math.Abs(n) > integerMax {
			return wrongType("a whole number", value)
		}
		field.SetInt(int64(n))
	case "number":
		n, err := number(value)
		if err != nil {
			return wrongType("a number", value)
		}
		field.SetFloat(n)
	case "seconds", "minutes":
		n, err := number(value)
		if err != nil || math.Abs(n)*a.unit.Seconds() > secondsMax {
			return wrongType("a number of "+a.Type, value)
		}
		d := time.Duration(n * float64(a.unit))
		field.SetInt(int64(a.scale.apply(d, factor)))
	case "steps":
		blocks, ok := value.(scenario.Blocks)
		if !ok {
			return wrongType("steps", value)
		}
		field.Set(reflect.ValueOf(blocks))
	case "list of text":
		return setList(field, value)
	case "mapping":
		m, ok := value.(map[string]any)
		if !ok {
			return wrongType("a mapping", value)
		}
		field.Set(reflect.ValueOf(m))
	}
	return nil
}

// integerMax bounds whole numbers in arguments, so that products of two of them cannot overflow.
const integerMax = 1 << 30

// secondsMax bounds durations in scenarios: a year.
const secondsMax = 366 * 24 * 3600

func setText(field reflect.Value, a Argument, value any) error {
	var text string
	switch v := value.(type) {
	case string:
		text = v
	case int64:
		text = strconv.FormatInt(v, 10)
	case float64:
		if v != math.Trunc(v) {
			return wrongType("text", value)
		}
		text = strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return wrongType("text", value)
	}
	if len(a.values) > 0 && !slices.Contains(a.values, text) {
		if len(a.values) == 1 {
			return fmt.Errorf("must be %s, not %q", a.values[0], text)
		}
		return fmt.Errorf("must be one of %s, not %q", strings.Join(a.values, ", "), text)
	}
	field.SetString(text)
	return nil
}

func setList(field reflect.Value, value any) error {
	items, ok := value.([]any)
	if !ok {
		return wrongType("a list", value)
	}
	texts := make([]string, len(items))
	for i, item := range items {
		if err := setText(reflect.ValueOf(&texts[i]).Elem(), Argument{}, item); err != nil {
			return err
		}
	}
	field.Set(reflect.ValueOf(texts))
	return nil
}

func number(value any) (float64, error) {
	switch v := value.(type) {
	case int64:
		return float64(v), nil
	case int:
		return float64(v), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return 0, fmt.Errorf("is not finite")
		}
		return v, nil
	}
	return 0, fmt.Errorf("is not a number")
}

func isNumber(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}

func wrongType(want string, got any) error {
	kind := "something else"
	switch v := got.(type) {
	case string:
		kind = fmt.Sprintf("the text %q", v)
	case bool:
		kind = strconv.FormatBool(v)
	case int64, float64, int:
		kind = fmt.Sprintf("the number %v", v)
	case []any:
		kind = "a list"
	case map[string]any:
		kind = "a mapping"
	}
	return fmt.Errorf("must be %s, not %s", want, kind)
}

// Values returns the bound arguments of a step as plain values, durations in seconds.
func (k Kind) Values(step Step) map[string]any {
	out := map[string]any{}
	fields := reflect.ValueOf(step).Elem()
	for _, a := range k.Arguments() {
		field := fields.Field(a.index)
		if field.Kind() == reflect.Pointer {
			if field.IsNil() {
				continue
			}
			field = field.Elem()
		}
		if a.Secret {
			out[a.Name] = "***"
			continue
		}
		if a.Type == "steps" {
			continue // they are separate steps of the plan
		}
		if d, ok := field.Interface().(time.Duration); ok {
			out[a.Name] = d.Seconds() / a.unit.Seconds()
			continue
		}
		if !field.IsZero() || field.Kind() == reflect.Bool {
			out[a.Name] = field.Interface()
		}
	}
	return out
}

// References returns the group and the workload that a step's arguments name.
func (k Kind) References(step Step) (group, workload string) {
	fields := reflect.ValueOf(step).Elem()
	for _, a := range k.Arguments() {
		switch a.Refers {
		case "group":
			group = fields.Field(a.index).String()
		case "workload":
			workload = fields.Field(a.index).String()
		}
	}
	return group, workload
}

// NodesWritten returns the nodes of a step as its scenario writes them: "0", ":n-1".
func (k Kind) NodesWritten(step Step) string {
	fields := reflect.ValueOf(step).Elem()
	for _, a := range k.Arguments() {
		if a.Type == "nodes" {
			return fields.Field(a.index).String()
		}
	}
	return ""
}

// KeepsTime reports whether steps of a kind only wait for a given time.
func (k Kind) KeepsTime() bool {
	return len(k.Needs) == 0 && slices.ContainsFunc(k.Arguments(), func(a Argument) bool { return a.Required && a.scale == scaleWait })
}
