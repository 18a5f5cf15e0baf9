package blockdev

// States that cannot be made on every machine, on made-up trees and images.

// disk is one disk of a made-up machine with a serial number.
func (k tree) disk(content image) State {
	k.device("sda", "8:0", gib, map[string]string{"serial": "S4EVNF0M", "device/model": "Example 1000"})
	return k.look(Number{8, 0}, content)
}

// rootOnLVM is a usual server: a boot partition, a free one, and the root file system on LVM on LUKS on the third.
func (k tree) rootOnLVM() {
	k.device("sda", "8:0", gib, map[string]string{"serial": "S4EVNF0M"})
	k.partition("sda", "sda1", "8:1", 1<<20, 100<<20)
	k.partition("sda", "sda2", "8:2", 101<<20, 100<<20)
	k.partition("sda", "sda3", "8:3", 201<<20, 700<<20)
	k.device("dm-0", "253:0", 600<<20, nil)
	k.device("dm-1", "253:1", 600<<20, nil)
	k.holds("dm-0", "sda/sda3")
	k.holds("dm-1", "dm-0")
	k.mounts("253:1 / / rw - ext4 /dev/mapper/root rw", "8:1 / /boot rw - ext4 /dev/sda1 rw")
}

func inUseMadeUp() []deviceState {
	return []deviceState{
		{title: "disk of the root file system, on LVM on LUKS", how: madeUp, want: []string{"held", "mounted"}, madeUp: func(k tree) State {
			k.rootOnLVM()
			return k.look(Number{8, 0}, image{})
		}},
		{title: "partition below LVM", how: madeUp, want: []string{"held", "mounted"}, madeUp: func(k tree) State {
			k.rootOnLVM()
			return k.look(Number{8, 3}, image{})
		}},
		{title: "disk whose file system holds the image of a mounted loop device", how: madeUp, want: []string{"mounted"}, madeUp: func(k tree) State {
			k.device("sda", "8:0", gib, map[string]string{"serial": "S4EVNF0M"})
			k.device("loop0", "7:0", 100<<20, map[string]string{"loop/backing_file": "/srv/with blank/image"})
			k.mounts(`8:0 / /srv/with\040blank rw - xfs /dev/sda rw`, "7:0 / /mnt rw - ext4 /dev/loop0 rw")
			return k.look(Number{8, 0}, image{})
		}},
		{title: "member of an MD array that is not mounted", how: madeUp, want: []string{"held"}, madeUp: func(k tree) State {
			k.device("md127", "9:127", gib, nil)
			k.device("sda", "8:0", gib, map[string]string{"serial": "S4EVNF0M"})
			k.holds("md127", "sda")
			return k.look(Number{8, 0}, image{})
		}},
		{title: "path of a multipath device", how: madeUp, want: []string{"held", "mounted"}, madeUp: func(k tree) State {
			k.device("dm-0", "253:0", gib, map[string]string{"dm/uuid": "mpath-3600508b400105e210000900000490000"})
			k.device("sda", "8:0", gib, map[string]string{"device/wwid": "naa.600508b400105e210000900000490000"})
			k.holds("dm-0", "sda")
			k.mounts("253:0 / /data rw - xfs /dev/mapper/mpatha rw")
			return k.look(Number{8, 0}, image{})
		}},
		{title: "bcache on it that lists no member", how: madeUp, want: []string{"held"}, madeUp: func(k tree) State {
			k.device("sda", "8:0", gib, map[string]string{"serial": "S4EVNF0M"})
			k.write("sys/devices/sda/holders/bcache0", "")
			return k.look(Number{8, 0}, image{})
		}},
		{title: "second member of a mounted btrfs", how: madeUp, want: []string{"mounted"}, madeUp: func(k tree) State {
			k.device("sda", "8:0", gib, map[string]string{"serial": "S4EVNF0M"})
			k.device("sdb", "8:16", gib, nil)
			k.write("sys/fs/btrfs/1c4d0f3e/devices/sda", "")
			k.write("sys/fs/btrfs/1c4d0f3e/devices/sdb", "")
			k.mounts("0:45 /sub /data rw shared:1 - btrfs /dev/sdb rw")
			return k.look(Number{8, 0}, image{})
		}},
		{title: "disk that carries a swap file", how: madeUp, want: []string{"mounted", "swap"}, madeUp: func(k tree) State {
			k.device("sda", "8:0", gib, map[string]string{"serial": "S4EVNF0M"})
			k.mounts("8:0 / / rw - ext4 /dev/sda rw")
			k.write("proc/swaps", "Filename Type Size Used Priority\n/swapfile file 1024 0 -2\n")
			return k.look(Number{8, 0}, image{})
		}},
		{title: "swap by a name of udev", how: madeUp, want: []string{"swap"}, madeUp: func(k tree) State {
			k.device("sda", "8:0", gib, map[string]string{"serial": "S4EVNF0M"})
			k.link("../../sda", "dev/disk/by-id/ata-Example_S4EVNF0M")
			k.write("proc/swaps", "Filename Type Size Used Priority\n/dev/disk/by-id/ata-Example_S4EVNF0M partition 1024 0 -2\n")
			return k.look(Number{8, 0}, image{})
		}},
		{title: "file that is swap", how: madeUp, want: []string{"swap"}, madeUp: func(k tree) State {
			k.write("proc/swaps", "Filename Type Size Used Priority\n/srv/swapfile file 1024 0 -2\n")
			return k.file("/srv/swapfile")
		}},
		{title: "image mounted without a loop device", how: madeUp, want: []string{"mounted"}, madeUp: func(k tree) State {
			k.mounts("0:50 / /mnt rw - erofs /srv/image rw")
			return k.file("/srv/image")
		}},
		{title: "mounts that cannot be read", how: madeUp, want: []string{"unreadable"}, madeUp: func(k tree) State {
			k.write("proc/self/mountinfo", "an unknown format\n")
			return k.disk(image{})
		}},
	}
}

// file is a regular file of the made-up machine.
func (k tree) file(path string) State {
	stack, err := k.system().stack()
	if err != nil {
		k.t.Fatal(err)
	}
	return State{Path: path, Node: path, Kind: Regular, Uses: stack.fileUses(path, FileID{}, false)}
}

// contentMadeUp has one row for each structure that there is a sample of, on a disk that is named by its serial number.
func contentMadeUp() []deviceState {
	var rows []deviceState
	for _, s := range samples() {
		rows = append(rows, deviceState{
			title: s.title, how: madeUp, want: []string{"signature"},
			madeUp: func(k tree) State { return k.disk(sampleOf(s.title)) },
			change: func(c *Consent) { c.Overwrite = []string{Data} },
		})
	}
	return append(rows,
		deviceState{title: "beginning that cannot be read", how: madeUp, want: []string{"unreadable"},
			madeUp: func(k tree) State { return k.disk(image{broken: 4096}) }},
		deviceState{title: "end that cannot be read", how: madeUp, want: []string{"unreadable"},
			madeUp: func(k tree) State { return k.disk(image{broken: gib - 4096}) }},
		deviceState{title: "partition that reaches behind the end", how: madeUp, want: []string{"unreadable"}, madeUp: func(k tree) State {
			k.device("sda", "8:0", gib, map[string]string{"serial": "S4EVNF0M"})
			k.partition("sda", "sda1", "8:1", 1<<20, gib)
			return k.look(Number{8, 0}, image{})
		}},
		deviceState{title: "no medium", how: madeUp, want: []string{"empty"}, madeUp: func(k tree) State {
			k.device("sr0", "11:0", 0, map[string]string{"serial": "S4EVNF0M"})
			return k.look(Number{11, 0}, image{})
		}},
		deviceState{title: "write-protected disk of a partition", how: madeUp, want: []string{"read-only"}, madeUp: func(k tree) State {
			k.device("sda", "8:0", gib, map[string]string{"serial": "S4EVNF0M", "ro": "1"})
			k.partition("sda", "sda1", "8:1", 1<<20, 100<<20)
			return k.look(Number{8, 1}, image{})
		}},
	)
}

func identityMadeUp() []deviceState {
	return []deviceState{
		{title: "another serial number", how: madeUp, want: []string{"wrong-device"},
			madeUp: func(k tree) State { return k.disk(image{}) },
			change: func(c *Consent) { c.Serial = "S4EVNF0N" }},
		{title: "another WWN", how: madeUp, want: []string{"wrong-device"},
			madeUp: func(k tree) State {
				k.device("sda", "8:0", gib, map[string]string{"device/wwid": "naa.5000c500a1b2c3d4"})
				return k.look(Number{8, 0}, image{})
			},
			change: func(c *Consent) { c.WWN = "naa.5000c500a1b2c3d5" }},
		{title: "right serial number and another size", how: madeUp, want: []string{"wrong-device"},
			madeUp: func(k tree) State { return k.disk(image{}) },
			change: func(c *Consent) { c.SizeBytes = 2 * gib }},
		{title: "persistent name of another disk", how: madeUp, want: []string{"wrong-device"},
			madeUp: func(k tree) State {
				k.link("../../sda", "dev/disk/by-id/ata-Example_1")
				k.link("../../sdb", "dev/disk/by-id/ata-Example_2")
				return k.disk(image{})
			},
			change: func(c *Consent) { c.Link = "/dev/disk/by-id/ata-Example_2" }},
		{title: "size and name of a disk that has a serial number", how: madeUp, want: []string{"unproven"},
			madeUp: func(k tree) State {
				k.link("../../sda", "dev/disk/by-id/ata-Example_1")
				return k.disk(image{})
			},
			change: func(c *Consent) { c.Serial = "" }},
		{title: "our claim copied to a disk of the same size", how: madeUp, want: []string{"unproven", "foreign-claim"},
			madeUp: func(k tree) State {
				block, err := Tag{Controller: "ours", Identity: "ANOTHER", SizeBytes: gib}.encode()
				if err != nil {
					k.t.Fatal(err)
				}
				return k.disk(image{parts: map[int64]string{-ClaimBytes: string(block)}})
			},
			change: func(c *Consent) { *c = Consent{Controller: "ours"} }},
		{title: "number without a driver", how: madeUp, want: []string{"unreadable"},
			madeUp: func(k tree) State { return k.look(Number{240, 7}, image{}) }},
	}
}
