package blockdev

import (
	"path/filepath"
	"slices"
	"strings"
)

// stack is how block devices are layered: partitions on disks, device-mapper and MD on their members, loop devices on files
// in file systems on devices. Uses start at the top and go down.
type stack struct {
	system system
	mounts []mount
	below  map[string][]string // the devices below each device
	loops  map[string]string   // loop device → path below it
	tops   []top
}

// top is the start of a use.
type top struct {
	kind UseKind
	what string
	name string // of the device
	file string // in use itself: a swap file, an image mounted without a loop device
}

// depthMax bounds a walk down; Linux itself allows fewer levels.
const depthMax = 32

func (s system) stack() (stack, error) {
	k := stack{system: s, below: map[string][]string{}, loops: map[string]string{}}
	var err error
	if k.mounts, err = s.mounts(); err != nil {
		return k, err
	}
	swaps, err := s.swaps()
	if err != nil {
		return k, err
	}
	for _, name := range s.names() {
		k.addDevice(name)
	}
	for _, m := range k.mounts {
		names := s.devicesOf(m)
		for _, name := range names {
			k.tops = append(k.tops, top{kind: Mounted, what: m.point, name: name})
		}
		// Some file systems mount a regular file without a loop device.
		if len(names) == 0 && strings.HasPrefix(m.source, "/") && !strings.HasPrefix(m.source, "/dev/") {
			k.addFile(top{kind: Mounted, what: m.point, file: m.source})
		}
	}
	for _, path := range swaps {
		if name := s.nameOfPath(path); name != "" {
			k.tops = append(k.tops, top{kind: Swap, what: path, name: name})
		} else {
			k.addFile(top{kind: Swap, what: path, file: path})
		}
	}
	return k, nil
}

func (k *stack) addDevice(name string) {
	s := k.system
	if disk := s.diskOf(name); disk != name {
		k.below[name] = append(k.below[name], disk)
	}
	for _, slave := range folderNames(filepath.Join(s.folder(name), "slaves")) {
		k.below[name] = append(k.below[name], slave)
		k.addHolder(name, slave)
	}
	for _, holder := range folderNames(filepath.Join(s.folder(name), "holders")) {
		k.addHolder(holder, name)
	}
	path := s.attribute(name, "loop", "backing_file")
	if path == "" || s.diskOf(name) != name {
		return
	}
	k.loops[name] = path
	if device := s.nameOfPath(path); device != "" {
		k.below[name] = append(k.below[name], device)
		k.addHolder(name, device)
	} else if m, ok := carrier(k.mounts, path); ok {
		k.below[name] = append(k.below[name], s.devicesOf(m)...)
	}
}

// addHolder records that a device is held by another one.
func (k *stack) addHolder(holder, held string) {
	t := top{kind: Held, what: holder, name: held}
	if !slices.Contains(k.tops, t) {
		k.tops = append(k.tops, t)
	}
}

// addFile records a file in use, and the devices that store it.
func (k *stack) addFile(t top) {
	k.tops = append(k.tops, t)
	if m, ok := carrier(k.mounts, t.file); ok {
		for _, name := range k.system.devicesOf(m) {
			k.tops = append(k.tops, top{kind: t.kind, what: t.what, name: name})
		}
	}
}

// chain finds the path down from one device to another, with both names; nil if there is none.
func (k *stack) chain(from, to string, depth int) []string {
	if from == to {
		return []string{to}
	}
	if depth == depthMax {
		return nil
	}
	for _, next := range k.below[from] {
		if rest := k.chain(next, to, depth+1); rest != nil {
			return append([]string{from}, rest...)
		}
	}
	return nil
}

// uses lists how a device is in use: itself, through the devices on top of it, through the disk of a partition, and through
// other users of the file of a loop device.
func (k *stack) uses(name string) []Use {
	var found []Use
	add := func(u Use) {
		same := func(o Use) bool { return o.Kind == u.Kind && o.What == u.What }
		if !slices.ContainsFunc(found, same) {
			found = append(found, u)
		}
	}
	for _, t := range k.tops {
		if t.name == "" {
			continue
		}
		if chain := k.chain(t.name, name, 0); chain != nil {
			add(Use{t.kind, t.what, chain})
		}
	}
	if disk := k.system.diskOf(name); disk != name {
		for _, u := range k.uses(disk) {
			// Uses through a partition count only for that partition.
			byPartition := len(u.Chain) > 1 && k.system.diskOf(u.Chain[len(u.Chain)-2]) == disk
			if !byPartition {
				add(Use{u.Kind, u.What, append(u.Chain, name)})
			}
		}
	}
	for _, u := range k.shared(name) {
		add(u)
	}
	return found
}

// shared lists other uses of the device or file of a loop device.
func (k *stack) shared(name string) []Use {
	path, bound := k.loops[name]
	if !bound {
		return nil
	}
	if device := k.system.nameOfPath(path); device != "" {
		var found []Use
		for _, u := range k.uses(device) {
			if u.What != name && !slices.Contains(u.Chain, name) {
				found = append(found, Use{u.Kind, u.What, append(u.Chain, name)})
			}
		}
		return found
	}
	file, known := k.fileBelow(name)
	var found []Use
	for _, u := range k.fileUses(path, file, known) {
		if u.What != name && !slices.Contains(u.Chain, name) {
			found = append(found, Use{u.Kind, u.What, append(u.Chain, name)})
		}
	}
	return found
}

// fileBelow identifies the file of a loop device.
func (k *stack) fileBelow(name string) (FileID, bool) {
	if k.system.loopFile == nil {
		return FileID{}, false
	}
	return k.system.loopFile(name)
}

// fileUses lists how a regular file is in use: by loop devices, as swap, or mounted. The name of the file in a chain is its
// path.
func (k *stack) fileUses(path string, file FileID, known bool) []Use {
	var found []Use
	for _, name := range k.system.names() {
		other, bound := k.loops[name]
		if !bound {
			continue
		}
		id, idKnown := k.fileBelow(name)
		if other != path && !(known && idKnown && id == file) {
			continue
		}
		found = append(found, Use{Held, name, []string{path}})
		for _, t := range k.tops {
			if chain := k.chain(t.name, name, 0); t.name != "" && chain != nil {
				found = append(found, Use{t.kind, t.what, append(chain, path)})
			}
		}
	}
	for _, t := range k.tops {
		if t.file == "" {
			continue
		}
		same := t.file == path
		if !same && known && k.system.fileOf != nil {
			id, ok := k.system.fileOf(t.file)
			same = ok && id == file
		}
		if same {
			found = append(found, Use{t.kind, t.what, []string{path}})
		}
	}
	return found
}
