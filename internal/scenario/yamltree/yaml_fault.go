package yamltree

import (
	"errors"
	"strings"

	"go.yaml.in/yaml/v4"
)

// FaultOf translates an error of the YAML library to the user's line and to plain words.
func (b *Builder) FaultOf(err error) Fault {
	var load *yaml.LoadError
	if !errors.As(err, &load) || load.Mark.Line == 0 {
		return b.documentFault(err)
	}
	mark := load.Mark
	if strings.Contains(load.Message, "end of stream") && load.ContextMark.Line > 0 {
		mark = load.ContextMark // where the quote opens, not where the text ends
	}
	if line, column, found := openQuote(b.Lines); found && line <= mark.Line {
		f := Fault{Code: "yaml-syntax", RenderedLine: line, Message: "the quote is never closed"}
		f.Line, f.Column, f.Width = b.Place.Place(line, column)
		return f
	}
	f := Fault{Code: "yaml-syntax", RenderedLine: mark.Line}
	line, column := b.line(mark.Line), b.byteColumn(mark.Line, mark.Column)
	f.Line, f.Column, f.Width = b.Place.Place(mark.Line, column)
	f.Message, f.Hint = plainWords(load.Message, load.ContextMsg)
	if column <= len(line) && strings.Contains(load.Message, "cannot start any token") {
		f.Message = "unexpected character " + string([]rune(line[column-1:])[:1])
		f.Hint = "quote the text"
		if line[column-1] == '\t' {
			f.Message, f.Hint = "a tab stands where blanks are wanted", "YAML is indented with blanks"
		}
	}
	return f
}

// complaints are the most common messages of the library, and their meaning for the author of a scenario.
var complaints = []struct{ says, means, hint string }{
	{"mapping values are not allowed", "a colon with a value is not allowed here",
		"check the indentation of this line and the one above, or quote text that has a colon in it"},
	{"unexpected end of stream", "the quote is never closed", ""},
	{"did not find expected '-' indicator", "this line is not part of the list above it", "indent it deeper, or begin it with \"- \""},
	{"did not find expected key", "a key is wanted here", "check the indentation of this line and the one above"},
	{"did not find expected ',' or ']'", "the list is not closed", "a comma or ] is missing"},
	{"did not find expected ',' or '}'", "the mapping is not closed", "a comma or } is missing"},
	{"did not find expected node content", "a value is missing here", ""},
	{"could not find expected ':'", "a colon is missing", "write \"key: value\""},
	{"tab character", "a tab stands where blanks are wanted", "YAML is indented with blanks"},
	{"unknown anchor", "no anchor of this name precedes this alias", "an anchor is &name before a value, an alias *name in place of one"},
	{"unknown escape character", "this escape is not known in quoted text", "use single quotes, or write the backslash twice"},
}

func plainWords(message, context string) (words, hint string) {
	for _, c := range complaints {
		if strings.Contains(message, c.says) {
			return c.means, c.hint
		}
	}
	if context != "" {
		message += ", " + context
	}
	return message, ""
}

// documentFault is for errors without a position.
func (b *Builder) documentFault(err error) Fault {
	f := Fault{Code: "yaml-syntax", Line: 1, Column: 1}
	text := err.Error()
	switch {
	case strings.Contains(text, "no documents"):
		f.Code, f.Message, f.Hint = "empty", "the document is empty", "a scenario begins with name:, display_name:, summary: …"
	case strings.Contains(text, "found multiple"):
		f.Message, f.Hint = "the file holds more than one document", "--- begins another; a scenario is one"
		seen := false
		for i, line := range b.Lines {
			if strings.HasPrefix(line, "---") && seen {
				f.Line, f.Column, f.Width = b.Place.Place(i+1, 1)
				f.Width = max(f.Width, len("---"))
				break
			}
			seen = seen || (line != "" && line[0] != '#')
		}
	default:
		if i := strings.LastIndex(text, "yaml: "); i >= 0 {
			text = text[i+len("yaml: "):]
		}
		f.Message = "invalid YAML: " + text
	}
	return f
}
