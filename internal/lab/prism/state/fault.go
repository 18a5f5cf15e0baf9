package state

import "fmt"

// Kind of a refusal.
type Kind string

// Kinds of refusals.
const (
	NotFound Kind = "NOT_FOUND" // 404
	Invalid  Kind = "INVALID"   // 400
	Busy     Kind = "CONFLICT"  // 409: the state does not allow it, or a name is taken
	Stale    Kind = "STALE"     // 412: changed meanwhile
)

// Refusal is why a request is not carried out.
type Refusal struct {
	Kind    Kind
	Message string
}

func (r *Refusal) Error() string { return r.Message }

func refuse(kind Kind, format string, args ...any) error {
	return &Refusal{kind, fmt.Sprintf(format, args...)}
}

// Missing is the refusal of an id that does not exist.
func Missing(what, id string) error { return refuse(NotFound, "%s %s was not found", what, id) }

// Invalidf is the refusal of what a request says.
func Invalidf(format string, args ...any) error { return refuse(Invalid, format, args...) }
