// Package syntax reads a template into statements and expressions, which package jinja evaluates.
//
//	text ──scan──▶ segments and tokens ──Parse──▶ []Stmt, and every fault on the way
package syntax

// Fault is one problem, at a byte range of the template.
type Fault struct {
	Offset, Width int
	Code          string // stable, in kebab case
	Message       string
	Hint          string
	Subject       string   // the unknown name, filter or test
	Choices       []string // what Subject could have been
}

// At is a byte range of the template.
type At struct{ Offset, Width int }

// Place returns a, so that types that embed At have a place.
func (a At) Place() At { return a }

// to returns the range from the start of a to the end of b.
func (a At) to(b At) At { return At{a.Offset, b.Offset + b.Width - a.Offset} }

// Fault makes a Fault there.
func (a At) Fault(code, message, hint string) *Fault {
	return &Fault{Offset: a.Offset, Width: a.Width, Code: code, Message: message, Hint: hint}
}

func (f *Fault) Error() string { return f.Message }
