package blockdev

// changed names the difference between two states of the same path, empty if there is none. A regular file may have grown.
func changed(before, after State) string {
	a, b := before.Device, after.Device
	switch {
	case before.Kind != after.Kind:
		return "kind"
	case before.File != after.File:
		return "file"
	case before.Number != after.Number:
		return "device number"
	case a.Sequence != b.Sequence:
		return "disk, which carries the same number,"
	case a.Name != b.Name:
		return "name"
	case before.Kind == Block && before.SizeBytes != after.SizeBytes:
		return "size"
	case a.Serial != b.Serial:
		return "serial number"
	case a.WWN != b.WWN:
		return "WWN"
	}
	return ""
}

// replaced is the reason if a path referred to another device the second time.
var replaced = Reason{
	Code:   "changed",
	Text:   "it is not any more the device that it was a moment ago",
	Advice: "a disk was exchanged or a device was set up again at this moment; check it before you retry",
}
