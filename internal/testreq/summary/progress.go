package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// progress tells how far the tests are, and how long they took the last time.
type progress struct {
	packages int
	ended    int
	file     string // where the times are kept; "": nowhere
	last     record
	now      func() time.Time
	began    time.Time
	complete bool // no package failed
}

// record is what is kept of a run.
type record struct {
	Packages int     `json:"packages"`
	Seconds  float64 `json:"seconds"`
}

func newProgress(packages int, file string, now func() time.Time) *progress {
	p := &progress{packages: packages, file: file, now: now, began: now(), complete: true}
	text, err := os.ReadFile(file)
	if err != nil || json.Unmarshal(text, &p.last) != nil || p.last.Seconds <= 0 || p.last.Packages <= 0 {
		p.last = record{} // not known: nothing depends on it but one line
	}
	return p
}

// about is how long this run may take, from the last one; 0 where nothing is known.
func (p *progress) about() time.Duration {
	if p.last.Packages == 0 {
		return 0
	}
	return time.Duration(p.last.Seconds / float64(p.last.Packages) * float64(p.packages) * float64(time.Second))
}

func (p *progress) begin(out io.Writer) {
	if p.file == "" {
		fmt.Fprintf(out, "%d packages.\n", p.packages)
		return
	}
	about := "long: more than half an hour on two cores; the next run here will know"
	if d := p.about(); d > 0 {
		about = "about " + clock(d) + " minutes, as the last time here"
	}
	fmt.Fprintf(out, "%d packages. It takes %s. make test-fast leaves out the long tests.\n", p.packages, about)
}

// done counts a package and says how far the whole is: "[12/58  3:42 of about 31:10]".
func (p *progress) done(e event) string {
	p.ended++
	p.complete = p.complete && e.Action != "fail"
	text := fmt.Sprintf("[%*d/%d  %s", len(fmt.Sprint(p.packages)), p.ended, p.packages, clock(p.now().Sub(p.began)))
	if d := p.about(); d > 0 {
		text += " of about " + clock(d)
	}
	return text + "]"
}

// clock prints minutes and seconds.
func clock(d time.Duration) string {
	seconds := int(d.Round(time.Second) / time.Second)
	return fmt.Sprintf("%d:%02d", seconds/60, seconds%60)
}

// cachedShare of the last time is less than a run takes whose tests were run: go test repeats what passed before from its cache.
const cachedShare = 0.5

// save keeps how long a run took that came to its end without a failure. A much shorter one had most results from go's cache.
func (p *progress) save() error {
	took := p.now().Sub(p.began).Seconds()
	if p.file == "" || !p.complete || p.ended < p.packages || took < cachedShare*p.about().Seconds() {
		return nil
	}
	text, err := json.Marshal(record{Packages: p.packages, Seconds: took})
	if err != nil {
		return err
	}
	err = os.MkdirAll(filepath.Dir(p.file), 0o755)
	if err == nil {
		err = os.WriteFile(p.file, append(text, '\n'), 0o644)
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil // not our checkout
	}
	return err
}
