package runref

import (
	"fmt"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/result"
)

// Read reads the bundle that word names for reporting. It uses sealed numbers only after comparing the files with the seal; live
// means that the run is still running.
func Read(b *result.Bundle, live bool, word string) (*document.Run, error) {
	caveats, err := checkSeal(b, word)
	if err != nil {
		return nil, err
	}
	run, err := document.Read(b)
	if err != nil {
		return nil, err
	}
	if live {
		// An existing summary belongs to a seal that is being written.
		run.Summary = result.Summary{Caveats: run.Summary.Caveats}
		run.Going = max(time.Since(run.Manifest.Created), time.Nanosecond)
	} else {
		doubtUnsealed(b, run)
	}
	run.Summary.Caveats = append(caveats, run.Summary.Caveats...)
	return run, nil
}

// checkSeal refuses a sealed bundle if a file that reports read has changed: its numbers would be printed as those of the run, on
// a page that is shared without the bundle. Other files become a caveat, because the sealed summary no longer depends on them.
//
// All files are compared, not only those that are read: hashing takes 0.06 s per 100 MB on a CPU with instructions for it, a few
// times as long on others.
func checkSeal(b *result.Bundle, word string) ([]string, error) {
	var read, others []string
	for _, d := range b.Differences() {
		if d.Read {
			read = append(read, d.Name+" "+d.How)
		} else {
			others = append(others, d.Name+" "+d.How)
		}
	}
	if len(read) > 0 {
		return nil, &diag.Error{
			Code: "broken-seal", Exit: diag.ExitData,
			Message: fmt.Sprintf("run %s was modified after sealing: %s", b.Manifest().Run, strings.Join(read, ", ")),
			Hint: "its numbers may be wrong: copy the bundle from its source again, or repeat the run;\n" +
				"bragg runs show " + word + " verifies all files",
		}
	}
	if len(others) > 0 {
		return []string{fmt.Sprintf("The bundle was modified after sealing: %s. The numbers are the sealed ones; they "+
			"cannot be evaluated again.", strings.Join(others, ", "))}, nil
	}
	return nil, nil
}

// doubtUnsealed removes the verdict from a summary without a seal, which is left by a writer that died between the two, or by
// removing the seal to change the numbers.
func doubtUnsealed(b *result.Bundle, run *document.Run) {
	s := &run.Summary
	if b.Sealed() != nil || s.Verdict == "" {
		return
	}
	s.Reason = fmt.Sprintf("The bundle has a summary (%s: %s) but no seal: its numbers cannot be verified.",
		s.Verdict, strings.TrimRight(s.Reason, "."))
	s.Verdict = result.Undecided
}

// Redact replaces names by pseudonyms in everything that is shown of runs; a name that several runs have gets the same pseudonym
// in all.
func Redact(runs ...*document.Run) error {
	var manifests []result.Manifest
	for _, run := range runs {
		manifests = append(manifests, run.Manifest)
	}
	r := result.NewRedactor(manifests...)
	for _, run := range runs {
		if err := redactRun(r, run); err != nil {
			return err
		}
	}
	return nil
}

func redactRun(r *result.Redactor, run *document.Run) (err error) {
	if run.Manifest, err = r.Manifest(run.Manifest); err != nil {
		return err
	}
	if run.Summary, err = r.Summary(run.Summary); err != nil {
		return err
	}
	if len(run.Plan) > 0 {
		if run.Plan, err = r.JSON(run.Plan); err != nil {
			return err
		}
	}
	for i := range run.Events {
		run.Events[i] = r.Event(run.Events[i])
	}
	return nil
}
