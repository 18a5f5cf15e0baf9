package report

import (
	"encoding/json"
	"fmt"
	"io"
)

// JSON writes the Document of run, indented, with a line feed at the end.
func JSON(w io.Writer, run *Run) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(Build(run)); err != nil {
		return fmt.Errorf("write report %q as json: %w", run.Manifest.Run, err)
	}
	return nil
}
