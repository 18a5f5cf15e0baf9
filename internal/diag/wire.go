package diag

import "errors"

// Wire is an error in transit to another process: the parts for the user, without its chain.
type Wire struct {
	Code    string `json:"code,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Exit    int    `json:"exit,omitempty"`
	List    List   `json:"list,omitempty"`
}

// ToWire extracts the Wire of err, which must not be nil.
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

// Err returns the transmitted error: an *Error, or a *ListError for a list of faults. An invalid exit code, or that of success,
// becomes ExitInternal.
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
