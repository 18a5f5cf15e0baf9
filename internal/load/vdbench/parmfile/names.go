package parmfile

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// Select returns the definitions of a kind that a parameter names: names, wildcards (sd*), ranges (sd1-sd9). Names without a match are
// errors of the file.
func (f *File) Select(kind Kind, p Parameter) (chosen []*Definition) {
	all := f.Of(kind)
	taken := map[*Definition]bool{}
	for _, word := range p.Values {
		found := false
		for _, d := range all {
			if !matches(word.Text, d.Name.Text) {
				continue
			}
			found = true
			if !taken[d] {
				taken[d], chosen = true, append(chosen, d)
			}
		}
		if !found {
			f.fault(word, "not-defined", fmt.Sprintf("no %s=%s", kind, short(word.Text)), "")
		}
	}
	return chosen
}

func matches(pattern, name string) bool {
	if pattern == name {
		return true
	}
	if from, to, ok := strings.Cut(pattern, "-"); ok {
		prefix, low := numbered(from)
		other, high := numbered(to)
		own, n := numbered(name)
		return prefix == other && own == prefix && low >= 0 && n >= low && n <= high && name == own+strconv.Itoa(n)
	}
	escaped := strings.NewReplacer(`\`, `\\`, "[", `\[`, "?", `\?`).Replace(pattern)
	ok, err := path.Match(escaped, name)
	return err == nil && ok
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
