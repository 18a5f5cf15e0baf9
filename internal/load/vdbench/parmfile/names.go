package parmfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Select returns the definitions of a kind that a parameter names: names, wildcards at the end (sd*), and in parentheses ranges
// ((sd1-sd9)). Names without a match are errors of the file.
func (f *File) Select(kind Kind, p Parameter) (chosen []*Definition) {
	if f.selected > selectedMax {
		return nil // reported
	}
	defer func() {
		if f.selected += len(chosen); f.selected > selectedMax {
			f.fault(p.Key, "too-many", fmt.Sprintf("names in this file select more than %d definitions together", selectedMax), "")
		}
	}()
	all := f.Of(kind)
	named, taken := map[string]*Definition{}, map[*Definition]bool{}
	for _, d := range all {
		named[d.Name.Text] = d
	}
	add := func(d *Definition) {
		if !taken[d] {
			taken[d], chosen = true, append(chosen, d)
		}
	}
	for _, word := range p.Values {
		from, to, dash := strings.Cut(word.Text, "-")
		prefix, wild := strings.CutSuffix(word.Text, "*")
		switch d := named[word.Text]; {
		case dash && p.List && !word.Quoted:
			f.selectRange(kind, word, from, to, func(name string) bool {
				d := named[name]
				if d != nil {
					add(d)
				}
				return d != nil
			})
		case d != nil:
			add(d)
		case wild && slices.ContainsFunc(all, func(d *Definition) bool { return strings.HasPrefix(d.Name.Text, prefix) }):
			for _, d := range all {
				if strings.HasPrefix(d.Name.Text, prefix) {
					add(d)
				}
			}
		default:
			f.notDefined(kind, word, dash)
		}
	}
	return chosen
}

// notDefined reports a name without a definition, and what vdbench does not have that may have been meant.
func (f *File) notDefined(kind Kind, word Word, dash bool) {
	hint := ""
	switch {
	case strings.ContainsAny(strings.TrimSuffix(word.Text, "*"), "*?"):
		hint = "vdbench has one wildcard, a * at the end"
	case dash:
		hint = "vdbench reads ranges only in parentheses: (" + short(word.Text) + ")"
	}
	f.fault(word, "not-defined", fmt.Sprintf("no %s=%s", kind, short(word.Text)), hint)
}

// selectRange selects from sd1 to sd9. In parentheses vdbench reads every name with a dash as a range.
func (f *File) selectRange(kind Kind, word Word, from, to string, add func(name string) (defined bool)) {
	prefix, low := numbered(from)
	other, high := numbered(to)
	if low < 0 || high < low || prefix != other {
		f.fault(word, "bad-range", fmt.Sprintf("in parentheses, vdbench reads %s as a range such as sd1-sd9", quote(word.Text)), "put a name with a dash in quotation marks")
		return
	}
	for n := low; n <= high; n++ {
		if name := prefix + strconv.Itoa(n); !add(name) {
			f.fault(word, "not-defined", fmt.Sprintf("no %s=%s, of the range %s", kind, short(name), short(word.Text)), "")
			return
		}
	}
}

// numbered cuts a name into its prefix and its number, -1 without one.
func numbered(name string) (prefix string, n int) {
	at := len(name)
	for at > 0 && name[at-1] >= '0' && name[at-1] <= '9' {
		at--
	}
	n, err := strconv.Atoi(name[at:])
	if err != nil {
		n = -1
	}
	return name[:at], n
}

// several makes the definitions of count=(first,number): the number is appended to the name, and to the lun or anchor or put into its
// %04d.
func (b *builder) several(d Definition) []Definition {
	p, has := d.Get("count")
	if !has {
		return []Definition{d}
	}
	first, firstErr := strconv.Atoi(p.Values[0].Text)
	number, numberErr := strconv.Atoi(p.Values[1].Text)
	if firstErr != nil || numberErr != nil || number < 1 || number > definitionsMax || first > countMax {
		b.fault(p.Values[0], "bad-value", "count: want the first number and how many", "")
		return []Definition{d}
	}
	var all []Definition
	for i := first; i < first+number; i++ {
		next := Definition{Kind: d.Kind, Name: d.Name}
		next.Name.Text += strconv.Itoa(i)
		for _, p := range d.Parameters {
			switch p.Key.Text {
			case "count":
				continue
			case "lun", "anchor":
				w := p.Values[0]
				w.Text = numberedPath(w.Text, i)
				p.Values = []Word{w}
			}
			next.Parameters = append(next.Parameters, p)
		}
		all = append(all, next)
	}
	return all
}

func numberedPath(text string, n int) string {
	if from := strings.IndexByte(text, '%'); from >= 0 {
		digits, rest, ok := strings.Cut(text[from+1:], "d")
		width, err := strconv.Atoi(digits)
		if ok && (digits == "" || err == nil && width >= 0 && width <= 9) {
			return text[:from] + fmt.Sprintf("%0*d", width, n) + rest
		}
	}
	return text + strconv.Itoa(n)
}
