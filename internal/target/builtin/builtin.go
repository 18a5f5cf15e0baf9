// Package builtin is the list of providers, and opens targets as users name them: "local", "local:8", "fake:4", or the path
// of a target file.
package builtin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/fake"
	"github.com/braggdev/bragg/internal/target/kube"
	"github.com/braggdev/bragg/internal/target/libvirt"
	"github.com/braggdev/bragg/internal/target/local"
	"github.com/braggdev/bragg/internal/target/nutanix"
	"github.com/braggdev/bragg/internal/target/ssh"
	"github.com/braggdev/bragg/internal/target/vsphere"
)

// Providers lists all providers. A new one needs one line here.
func Providers() []target.Provider {
	return []target.Provider{
		local.Provider(),
		fake.Provider(),
		libvirt.Provider(),
		ssh.Provider(),
		kube.Provider(),
		nutanix.Provider(),
		vsphere.Provider(),
	}
}

const fileBytesMax = 1 << 20

// Load turns a user's target name into a Config; the empty text means "local". A provider's name selects that provider;
// write "./local" for a file of the same name.
func Load(spec string) (target.Config, error) {
	if spec == "" {
		spec = "local"
	}
	name, count, counted := strings.Cut(spec, ":")
	if provider, ok := find(name); ok && provider.MakesNodes {
		c := target.Config{Provider: name, Name: name, Allow: target.Allow{NodePower: true, Maintenance: true}}
		if !counted {
			return c, nil
		}
		n, err := strconv.Atoi(count)
		if err != nil || n < 1 {
			return target.Config{}, &diag.Error{
				Code: "target-node-count", Exit: diag.ExitUsage, Message: fmt.Sprintf("open target %q: invalid number of nodes: %q", spec, count),
				Hint: fmt.Sprintf("write %s:4 for four nodes", name),
			}
		}
		c.NodeCount = n
		return c, nil
	}
	text, err := readFile(spec)
	if err != nil {
		return target.Config{}, unreadable(spec, err)
	}
	c, list := target.ParseConfig(spec, text, Providers())
	c.InFolder(filepath.Dir(spec))
	return c, list.Err()
}

func find(name string) (target.Provider, bool) {
	all := Providers()
	i := slices.IndexFunc(all, func(p target.Provider) bool { return p.Name == name })
	if i < 0 {
		return target.Provider{}, false
	}
	return all[i], true
}

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, fileBytesMax+1)) // one more than allowed, so that the parser detects it
}

func unreadable(spec string, err error) error {
	var names []string
	for _, p := range Providers() {
		names = append(names, p.Name)
	}
	e := &diag.Error{
		Code: "target-unreadable", Exit: diag.ExitUsage, Message: fmt.Sprintf("read target file %q", spec), Err: err,
		Hint: "a target is a file, or local, local:NODES, fake or fake:NODES; bragg targets init FILE writes one",
	}
	if near := diag.Nearest(spec, names); near != "" && errors.Is(err, fs.ErrNotExist) {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	return e
}

// Open opens the target that spec names; see Load.
func Open(ctx context.Context, spec string, o target.OpenOptions) (target.Target, error) {
	c, err := Load(spec)
	if err != nil {
		return nil, err
	}
	return OpenConfig(ctx, c, o)
}

// OpenConfig opens the target that c describes.
func OpenConfig(ctx context.Context, c target.Config, o target.OpenOptions) (target.Target, error) {
	p, ok := find(c.Provider)
	if !ok {
		return nil, &diag.Error{
			Code: "target-unknown-provider", Exit: diag.ExitData, Message: fmt.Sprintf("open target %q: unknown provider %q", c.Name, c.Provider),
		}
	}
	t, err := p.Open(ctx, c, o)
	if err != nil {
		return nil, fmt.Errorf("open target %q: %w", cmp.Or(c.Name, c.Provider), err)
	}
	return t, nil
}

// Check opens a target and reports its inventory and every problem that can be found without changing anything: in the
// file, in the references to secrets, in reaching the platform. It never prints a secret.
func Check(ctx context.Context, spec string, o target.OpenOptions) (target.Inventory, diag.List) {
	c, err := Load(spec)
	if err != nil {
		return target.Inventory{}, problems(spec, err)
	}
	place := diag.Position{File: c.File}
	list, reported := unreadSecrets(ctx, c)
	t, err := OpenConfig(ctx, c, o)
	switch {
	case err != nil && slices.ContainsFunc(reported, func(text string) bool { return strings.Contains(err.Error(), text) }):
		return target.Inventory{}, list
	case err != nil:
		return target.Inventory{}, append(list, problems(spec, err)...)
	}
	defer t.Close()
	inventory, err := t.Inventory(ctx)
	if err != nil {
		return target.Inventory{}, append(list, problems(spec, err)...)
	}
	if len(inventory.Nodes) == 0 {
		list.Errorf(place, "target-no-nodes", "the target has no nodes")
	}
	if ready, ok := t.(target.ReadyChecker); ok {
		if err := ready.Ready(ctx); err != nil {
			list.Warnf(place, "target-not-ready", "the target is not ready: %v", err)
		}
	}
	return inventory, list
}

// unreadSecrets reports the secrets that cannot be read, and the texts of their errors, which providers repeat.
func unreadSecrets(ctx context.Context, c target.Config) (list diag.List, reported []string) {
	for _, name := range slices.Sorted(maps.Keys(c.Credentials)) {
		if _, err := c.Credentials[name].Secret.Read(ctx); err != nil {
			var hint string
			if userErr := new(diag.Error); errors.As(err, &userErr) {
				hint = userErr.Hint
			}
			list.Add(c.Place("credentials."+name, target.CodeSecret, hint, fmt.Sprintf("credential %q: %v", name, err)))
			reported = append(reported, err.Error())
		}
	}
	return list, reported
}

// problems turns an error into diagnostics, keeping those that have places.
func problems(spec string, err error) diag.List {
	var listed *diag.ListError
	if errors.As(err, &listed) {
		return listed.List
	}
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		if all := each(spec, joined.Unwrap()); len(all) > 0 {
			return all
		}
	}
	d := diag.Diagnostic{Code: "target-unavailable", Message: err.Error(), Pos: diag.Position{File: spec}}
	var userErr *diag.Error
	if errors.As(err, &userErr) {
		d.Code, d.Hint = userErr.Code, userErr.Hint
	}
	var list diag.List
	list.Add(d)
	return list
}

// each turns errors that were found together into a diagnostic each, if all have a code. Otherwise they only make sense together.
func each(spec string, errs []error) diag.List {
	var list diag.List
	for _, err := range errs {
		var userErr *diag.Error
		if !errors.As(err, &userErr) {
			return nil
		}
		list = append(list, problems(spec, err)...)
	}
	return list
}
