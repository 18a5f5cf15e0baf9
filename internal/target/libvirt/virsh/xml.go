package virsh

import (
	"encoding/xml"
	"strings"
	"text/template"
)

// Template makes XML for calls.
type Template struct{ text *template.Template }

// NewTemplate parses a built-in template, in which the function x escapes text. It panics on an invalid template.
func NewTemplate(text string) Template {
	escape := func(text string) string {
		var b strings.Builder
		_ = xml.EscapeText(&b, []byte(text)) // a Builder takes everything
		return b.String()
	}
	return Template{template.Must(template.New("").Funcs(template.FuncMap{"x": escape}).Parse(text))}
}

// Text executes the template. It panics if the template does not fit the type of data.
func (t Template) Text(data any) []byte {
	var b strings.Builder
	if err := t.text.Execute(&b, data); err != nil {
		panic(err)
	}
	return []byte(b.String())
}
