package scenario

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/braggdev/bragg/internal/diag"
)

// Options choose values for the variables of a scenario.
type Options struct {
	Set    map[string]string // variable → text, read as the type of the variable's default
	Preset string
}

// Load reads a scenario folder. Faults of the text are a *diag.ListError with every problem found; a folder that is missing or
// cannot be read is a *diag.Error. With a *diag.ListError, Load also returns the scenario as far as it could be read, only for
// further advice. The context bounds reading and rendering.
func Load(ctx context.Context, src Source, opts Options) (*Scenario, error) {
	dir, err := src.open()
	if err != nil {
		return nil, err
	}
	defer dir.close()
	text, err := dir.read(dir.document, documentBytesMax)
	if err != nil {
		return nil, documentError(dir, err)
	}
	source, problem := checkText(dir.shown, text)
	if problem != nil {
		return nil, diag.List{*problem}.Err()
	}
	req := request{File: dir.shown, Source: source, Chosen: opts}
	var resp response
	if src.Trusted {
		resp = compose(req)
	} else if resp, err = composeInChild(ctx, req); err != nil {
		return nil, err
	}
	return finish(dir, source, resp)
}

// finish builds the Scenario from the child's response, and reads the files that it names.
func finish(dir *folder, source string, resp response) (*Scenario, error) {
	p := &parser{
		reader: &reader{file: dir.shown, source: splitLines(source), rendered: splitLines(resp.Rendered), problems: resp.Problems},
		sc: &Scenario{Inputs: resp.Inputs, Origin: Origin{
			Dir: dir.path, Archive: dir.zip, Document: dir.shown, Source: source, Rendered: resp.Rendered, Files: map[string]string{},
		}},
	}
	if resp.Root != nil {
		p.sc.noteWidths(*resp.Root)
		p.document(*resp.Root)
		p.files(dir)
	}
	list := p.collected()
	if err := list.Err(); err != nil {
		return p.sc, err
	}
	p.sc.Warnings = list
	p.sc.Hash = contentHash(p.sc)
	return p.sc, nil
}

// contentHash covers what determines a run: the source, the files and the values of the variables. Every part is preceded by its
// length, so that no two scenarios share a hash by shifting text from one part to the next.
func contentHash(sc *Scenario) string {
	h := sha256.New()
	put := func(s string) {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(s)))
		h.Write(size[:])
		h.Write([]byte(s))
	}
	put(sc.Source)
	names := slices.Sorted(maps.Keys(sc.Files))
	put(fmt.Sprint(len(names)))
	for _, name := range names {
		put(name)
		put(sc.Files[name])
	}
	for _, v := range sc.Variables {
		put(v.Name)
		put(fmt.Sprintf("%T %v", v.Value, v.Value))
	}
	return hex.EncodeToString(h.Sum(nil))
}
