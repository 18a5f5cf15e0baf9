package diag

import "errors"

// Wire is an error on its way to another process: what a person needs of it, without its chain.
type Wire struct {
	Code    string `json:"code,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Exit    int    `json:"exit,omitempty"`
	List    List   `json:"list,omitempty"`
}

// ToWire takes of err, which must not be nil, what travels.
func ToWire(err error) Wire {
	w := Wire{Message: err.Error(), Exit: ExitCode(err)}
	var told *Error
	if errors.As(err, &told) {
		w.Code, w.Hint = told.Code, told.Hint
	}
	var list *ListError
	if errors.As(err, &list) {
		w.List = list.List
	}
	return w
}

// Err returns the error that travelled: an *Error, or a *ListError where there was a list of faults. An exit code that no
// process can have, or that of success, becomes ExitInternal.
func (w *Wire) Err() error {
	if w.List.HasErrors() {
		return &ListError{List: w.List}
	}
	e := &Error{Code: w.Code, Message: w.Message, Hint: w.Hint, Exit: w.Exit}
	if w.Exit <= ExitPass || w.Exit > 255 {
		e.Exit = ExitInternal
	}
	return e
}
