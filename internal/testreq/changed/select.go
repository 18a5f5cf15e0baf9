package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// listedPackage is what go list says of a package.
type listedPackage struct {
	ImportPath, Dir           string
	Deps                      []string
	TestImports, XTestImports []string
	EmbedPatterns, EmbedFiles []string
	TestEmbedFiles            []string
	XTestEmbedFiles           []string
	TestGoFiles, XTestGoFiles []string
	Module                    *struct{ Path string }
}

// list lists the packages of the module, those with errors too.
func list(root string) ([]listedPackage, error) {
	command := exec.Command("go", "list", "-e", "-json=ImportPath,Dir,Deps,TestImports,XTestImports,EmbedPatterns,EmbedFiles,TestEmbedFiles,XTestEmbedFiles,"+
		"TestGoFiles,XTestGoFiles,Module", "./...")
	command.Dir = root
	pipe, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	var all []listedPackage
	for decoder := json.NewDecoder(pipe); ; {
		var p listedPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, errors.Join(err, command.Wait())
		}
		all = append(all, p)
	}
	if err := command.Wait(); err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	return all, nil
}

// selection is what changed files mean for packages, which are named by their import paths.
type selection struct {
	files       []string
	all         map[string]listedPackage
	folders     map[string]string // packages by their folders from the root
	direct      map[string]string // packages whose tests a change affects by itself, and a reason
	product     map[string]bool   // of these, those that others can depend on
	dependent   map[string]bool   // packages that depend on those
	viaPrograms map[string]bool   // packages that depend on them by a program that their tests build
	unknown     []string          // files
}

// always are packages whose tests look at the whole repository.
var always = []string{"/internal/archtest"}

// everything are files that all packages depend on.
var everything = []string{"go.mod", "go.sum"}

// selectBy selects packages by changed files.
func selectBy(root string, packages []listedPackage, found []reference, files []string) *selection {
	s := &selection{files: files, all: map[string]listedPackage{}, folders: map[string]string{}, direct: map[string]string{}, product: map[string]bool{},
		dependent: map[string]bool{}, viaPrograms: map[string]bool{}}
	for _, p := range packages {
		s.all[p.ImportPath] = p
		if folder, err := filepath.Rel(root, p.Dir); err == nil {
			s.folders[filepath.ToSlash(folder)] = p.ImportPath
		}
	}
	for _, file := range files {
		known := s.byFolder(file)
		for _, r := range found {
			if file == r.path || strings.HasPrefix(file, r.path+"/") && !inPackage(file) {
				known = true
				s.add(s.folders[r.folder], "it reads "+file, r.shared)
			}
		}
		if !known {
			s.unknown = append(s.unknown, file)
		}
	}
	for name := range s.all {
		if len(files) > 0 && slices.ContainsFunc(always, func(end string) bool { return strings.HasSuffix(name, end) }) {
			s.add(name, "it looks at all files", false)
		}
	}
	s.depend()
	s.build(found)
	return s
}

// inPackage reports whether a file is compiled into a package: a test that names the folder reads other files there.
func inPackage(file string) bool {
	return strings.HasSuffix(file, ".go") && !strings.Contains("/"+file, "/testdata/")
}

// add selects a package. One that other packages depend on by the change is shared.
func (s *selection) add(name, why string, shared bool) {
	if name == "" {
		return
	}
	if s.direct[name] == "" {
		s.direct[name] = why
	}
	s.product[name] = s.product[name] || shared
}

// byFolder selects the package that a file belongs to, if any.
func (s *selection) byFolder(file string) (known bool) {
	if slices.Contains(everything, file) {
		for name := range s.all {
			s.add(name, file, true)
		}
		return true
	}
	folder, inTestdata := path.Dir(file), strings.Contains("/"+file, "/testdata/")
	if name := s.folders[folder]; name != "" && strings.HasSuffix(file, ".go") {
		s.add(name, file, !strings.HasSuffix(file, "_test.go"))
		return true
	}
	for ; folder != "."; folder = path.Dir(folder) {
		name := s.folders[folder]
		if name == "" {
			continue
		}
		// A file that is gone is not among the embedded ones, so the patterns decide.
		p, within := s.all[name], strings.TrimPrefix(file, folder+"/")
		shared := slices.Contains(p.EmbedFiles, within) || len(p.EmbedPatterns) > 0 && !inTestdata
		s.add(name, file, shared)
		return true
	}
	return false
}

// reaches reports whether what the tests of a package are compiled from is, or depends on, one that is wanted.
func (s *selection) reaches(p listedPackage, wanted func(name string) bool) bool {
	if slices.ContainsFunc(p.Deps, wanted) {
		return true
	}
	for _, name := range slices.Concat(p.TestImports, p.XTestImports) {
		if wanted(name) || slices.ContainsFunc(s.all[name].Deps, wanted) {
			return true
		}
	}
	return false
}

// depend selects the packages that depend on those that changed.
func (s *selection) depend() {
	for name, p := range s.all {
		if s.direct[name] == "" && s.reaches(p, func(other string) bool { return s.product[other] }) {
			s.dependent[name] = true
		}
	}
}

// build finds the packages whose tests build a program that contains a change.
func (s *selection) build(found []reference) {
	builders := map[string]bool{} // packages with files that name programs
	own := map[string]bool{}      // of these, those whose own tests do
	contains := false
	for name, p := range s.all {
		if folder := s.folderOf(name); strings.HasPrefix(folder, "cmd/") {
			contains = contains || s.product[name] || slices.ContainsFunc(p.Deps, func(other string) bool { return s.product[other] })
		}
	}
	if !contains {
		return
	}
	for _, r := range found {
		if strings.HasPrefix(r.path+"/", "cmd/") {
			own[s.folders[r.folder]] = true
			builders[s.folders[r.folder]] = builders[s.folders[r.folder]] || r.shared
		}
	}
	for name, p := range s.all {
		uses := own[name] || s.reaches(p, func(other string) bool { return builders[other] })
		if uses && s.direct[name] == "" && !s.dependent[name] {
			s.viaPrograms[name] = true
		}
	}
}

func (s *selection) folderOf(name string) string {
	for folder, other := range s.folders {
		if other == name {
			return folder
		}
	}
	return ""
}

// packages lists the selected packages that have tests.
func (s *selection) packages(programs bool) (names []string) {
	for name, p := range s.all {
		if len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 && (s.direct[name] != "" || s.dependent[name] || programs && s.viaPrograms[name]) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
