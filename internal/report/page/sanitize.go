package page

import (
	"html"
	"strings"

	xhtml "golang.org/x/net/html"

	"github.com/braggdev/bragg/internal/textio"
)

// Descriptions of scenarios are untrusted HTML. Only these elements are kept, without attributes; headings become one level that
// fits the page. Other elements lose their tags; elements that do not hold text lose their content as well.
var descriptionElements = map[string]string{
	"p": "p", "br": "br", "strong": "strong", "b": "strong", "em": "em", "i": "em", "code": "code", "tt": "code",
	"ul": "ul", "ol": "ol", "li": "li", "pre": "pre",
	"h1": "h3", "h2": "h3", "h3": "h4", "h4": "h4", "h5": "h4", "h6": "h4",
}

// descriptionDropped are elements whose content is not readable text.
var descriptionDropped = map[string]bool{
	"script": true, "style": true, "template": true, "iframe": true, "object": true, "svg": true, "math": true,
	"noscript": true, "noembed": true, "noframes": true, "textarea": true, "title": true, "select": true, "xmp": true,
	"plaintext": true, "head": true,
}

const (
	descriptionBytesMax = 64 << 10
	descriptionDepthMax = 16
)

// sanitizeDescription returns HTML that is safe to put into the page: balanced, of allowed elements only. It is rebuilt from
// tokens; every byte of the input is escaped.
func sanitizeDescription(source string) string {
	s := sanitizer{}
	tokens := xhtml.NewTokenizer(strings.NewReader(source))
	for s.out.Len() < descriptionBytesMax {
		kind := tokens.Next()
		if kind == xhtml.ErrorToken {
			break
		}
		token := tokens.Token()
		switch kind {
		case xhtml.TextToken:
			s.text(token.Data)
		case xhtml.StartTagToken:
			s.start(token.Data)
		case xhtml.SelfClosingTagToken:
			if token.Data == "br" {
				s.start("br")
			}
		case xhtml.EndTagToken:
			s.end(token.Data)
		}
	}
	for len(s.open) > 0 {
		s.pop()
	}
	return strings.TrimSpace(s.out.String())
}

type sanitizer struct {
	out     strings.Builder
	open    []string
	dropped []string // elements whose content is being dropped
}

func (s *sanitizer) text(data string) {
	if len(s.dropped) == 0 {
		s.out.WriteString(html.EscapeString(textio.Lines(data)))
	}
}

func (s *sanitizer) start(name string) {
	if descriptionDropped[name] {
		s.dropped = append(s.dropped, name)
		return
	}
	element, allowed := descriptionElements[name]
	if !allowed || len(s.dropped) > 0 {
		return
	}
	if element == "br" {
		s.out.WriteString("<br>")
		return
	}
	if len(s.open) >= descriptionDepthMax {
		return
	}
	s.open = append(s.open, element)
	s.out.WriteString("<" + element + ">")
}

func (s *sanitizer) end(name string) {
	if n := len(s.dropped); n > 0 {
		if s.dropped[n-1] == name {
			s.dropped = s.dropped[:n-1]
		}
		return
	}
	element, allowed := descriptionElements[name]
	if !allowed || element == "br" {
		return
	}
	for i := len(s.open) - 1; i >= 0; i-- {
		if s.open[i] == element {
			for len(s.open) > i {
				s.pop()
			}
			return
		}
	}
}

func (s *sanitizer) pop() {
	last := len(s.open) - 1
	s.out.WriteString("</" + s.open[last] + ">")
	s.open = s.open[:last]
}
