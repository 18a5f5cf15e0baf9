package load

// Consent proves that a user means one particular block device, and states what may be lost on it. It is sent with the
// Device and checked on the machine that opens the device. Package blockdev has the rules: all given facts must match, and
// a device is identified by one of
//   - its serial number or WWN;
//   - a claim tag of Bragg that Controller wrote;
//   - its size together with a persistent name, if it has neither serial number nor WWN;
//   - its size alone, if Own says that it is a virtual disk that this run made.
//
// A regular file needs no consent.
type Consent struct {
	Serial     string   `json:"serial,omitempty"`
	WWN        string   `json:"wwn,omitempty"`
	SizeBytes  int64    `json:"size_bytes,omitempty"`
	Link       string   `json:"link,omitempty"`       // below /dev/disk/by-id; of a loop device its backing file; without either, its own node
	Controller string   `json:"controller,omitempty"` // id of the requesting controller
	Overwrite  []string `json:"overwrite,omitempty"`  // signatures by their names ("ext4", "gpt"), and "data" for content without a known one
	// Own: this run made the disk, for the VM that the load runs on, so that all its content is the run's own. A device
	// of another size is not that disk, and one in use is never written to.
	Own bool `json:"own,omitempty"`
}
