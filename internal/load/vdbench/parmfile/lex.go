package parmfile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
)

// UnsetVariable is the code of a variable without a value.
const UnsetVariable = "unset-variable"

// letter is a byte of a statement and where it comes from. Bytes of a variable's value have the position of the variable.
type letter struct {
	b    byte
	line int
	col  int
}

// statements cuts the text into logical lines and those into parameters.
func (f *File) statements(variables map[string]string) (all [][]Parameter) {
	var open []letter
	flush := func() {
		if len(open) > 0 {
			if s := f.parameters(open); len(s) > 0 {
				all = append(all, s)
			}
			open = nil
		}
	}
	for i, line := range f.lines {
		content := f.content(i+1, line)
		if len(content) == 0 {
			continue
		}
		if at := content[0]; len(content) == 3 && strings.HasPrefix(line[at.col-1:], "eof") {
			break // vdbench reads no further
		}
		open = append(open, f.substitute(content, variables)...)
		if n := len(open); n == 0 || open[n-1].b != ',' {
			flush()
		}
	}
	if n := len(open); n > 0 && open[n-1].b == ',' {
		f.warn(f.word(open[n-1:]), "continued", "if that was the last parameter, remove the comma", "the file ends after a comma, which announces another parameter")
	}
	flush()
	return all
}

// content is a line without comments and blanks around it.
func (f *File) content(number int, line string) []letter {
	from := len(line) - len(strings.TrimLeft(line, " \t"))
	if from == len(line) || strings.IndexByte("*#/", line[from]) >= 0 {
		return nil
	}
	end, quoted := from, false
	for end < len(line) && (quoted || line[end] != ' ' && line[end] != '\t') {
		if line[end] == '"' {
			quoted = !quoted
		}
		end++
	}
	letters := make([]letter, end-from)
	for i := range letters {
		letters[i] = letter{line[from+i], number, from + i + 1}
	}
	if rest := strings.TrimSpace(line[end:]); rest != "" && looksMeant(line[from:end], rest) {
		at := Word{Text: rest, Pos: diag.Position{File: f.Name, Line: number, Column: strings.Index(line[end:], rest) + end + 1}}
		f.At(at, diag.SeverityWarning, "blank-begins-comment", fmt.Sprintf("vdbench reads %q as a comment, because a blank precedes it", short(rest)), "remove the blank")
	}
	return letters
}

// looksMeant reports whether text after a blank is a parameter rather than a comment.
func looksMeant(before, rest string) bool {
	if strings.Count(before, "(") > strings.Count(before, ")") || strings.HasPrefix(rest, ",") || strings.HasPrefix(rest, "=") || strings.HasSuffix(before, "=") {
		return true
	}
	key, _, isKey := strings.Cut(rest, "=")
	return isKey && strings.HasSuffix(before, ",") && !strings.ContainsAny(key, " \t")
}

// substitute replaces variables.
func (f *File) substitute(in []letter, variables map[string]string) (out []letter) {
	for i := 0; i < len(in); i++ {
		if in[i].b != '$' && in[i].b != '!' {
			out = append(out, in[i])
			continue
		}
		end := i + 1
		for end < len(in) && isName(in[end].b) {
			end++
		}
		if end == i+1 {
			out = append(out, in[i])
			continue
		}
		name := f.word(in[i:end])
		value, known := variables[name.Text[1:]]
		f.used[name.Text[1:]] = true
		if !known {
			f.fault(name, UnsetVariable, fmt.Sprintf("variable %s is not set", quote(name.Text)), fmt.Sprintf("set the option %q of the workload", VariablePrefix+name.Text[1:]))
			value = name.Text[1:]
		}
		if f.expanded += len(value); f.expanded > bytesMax {
			f.fault(name, "too-long", fmt.Sprintf("the values of variables have more than %d bytes together", bytesMax), "")
			return out
		}
		for k := range len(value) {
			out = append(out, letter{value[k], in[i].line, in[i].col})
		}
		i = end - 1
	}
	return out
}

// VariablePrefix begins the options of a workload that set variables.
const VariablePrefix = "var_"

func isName(b byte) bool {
	return b == '_' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}

// parameters cuts a logical line into keys and values.
func (f *File) parameters(line []letter) (all []Parameter) {
	for _, part := range f.split(line) {
		at := slices.IndexFunc(part, func(l letter) bool { return l.b == '=' })
		if at <= 0 || at == len(part)-1 {
			f.fault(f.word(part), "no-value", fmt.Sprintf("%s is not key=value", quote(f.word(part).Text)), "")
			continue
		}
		p := Parameter{Key: f.word(part[:at])}
		p.Key.Text = strings.ToLower(p.Key.Text)
		value := part[at+1:]
		if value[0].b == '(' && value[len(value)-1].b == ')' {
			p.List = true
			value = value[1 : len(value)-1]
			for _, v := range f.split(value) {
				p.Values = append(p.Values, f.word(v))
			}
		} else {
			p.Values = []Word{f.word(value)}
		}
		if len(p.Values) == 0 {
			f.fault(p.Key, "no-value", quote(p.Key.Text)+" has an empty list", "")
			continue
		}
		all = append(all, p)
	}
	return all
}

// split cuts at commas outside parentheses and quotes. A comma at the end continued the line and begins nothing.
func (f *File) split(line []letter) (parts [][]letter) {
	depth, from, quoted := 0, 0, false
	cut := func(to int, last bool) {
		switch {
		case to > from:
			parts = append(parts, line[from:to])
		case !last:
			f.fault(f.word(line[to:to+1]), "empty", "nothing before this comma", "")
		}
		from = to + 1
	}
	for i, l := range line {
		switch {
		case l.b == '"':
			quoted = !quoted
		case quoted:
		case l.b == '(':
			depth++
		case l.b == ')':
			depth--
		case l.b == ',' && depth == 0:
			cut(i, false)
		}
		if depth < 0 {
			f.fault(f.word(line[i:i+1]), "parenthesis", "closing parenthesis without an opening one", "")
			depth = 0
		}
	}
	if depth > 0 {
		f.fault(f.word(line[from:]), "parenthesis", "opening parenthesis without a closing one", "a blank ends the line, and a list must not contain one")
	}
	if quoted {
		f.fault(f.word(line[from:]), "quote", "quotation mark without a second one", "")
	}
	cut(len(line), true)
	return parts
}

// word is a piece of a statement, without quotation marks around it.
func (f *File) word(letters []letter) Word {
	text := make([]byte, len(letters))
	for i, l := range letters {
		text[i] = l.b
	}
	w := Word{Text: strings.ToValidUTF8(string(text), "\uFFFD"), Pos: diag.Position{File: f.Name}}
	if len(letters) > 0 {
		w.Pos.Line, w.Pos.Column = letters[0].line, letters[0].col
	}
	if n := len(w.Text); n >= 2 && w.Text[0] == '"' && w.Text[n-1] == '"' {
		w.Text, w.Quoted = w.Text[1:n-1], true
	}
	return w
}

func quote(text string) string { return fmt.Sprintf("%q", short(text)) }

// short cuts a text for a message.
func short(text string) string {
	if len(text) <= 60 {
		return text
	}
	return strings.ToValidUTF8(text[:57], "") + "…"
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
