package state

import (
	"io"
	"os"
	"slices"
)

// CreateImage makes an image without contents: WriteImage gives it them.
func (p *store) CreateImage(i Image) (task, id string, err error) {
	image := i
	image.ID = NewID()
	if image.Kind == "" {
		image.Kind = "DISK_IMAGE"
	}
	if image.Name == "" || len(image.Name) > nameBytesMax {
		return "", "", Invalidf("name: want 1 to %d bytes", nameBytesMax)
	}
	if err := p.change(func(d *Data) error { return d.checkCategories(i.Categories) }); err != nil {
		return "", "", err
	}
	task, err = p.begin(job{
		operation: "ImageCreate", description: "Create image", entities: []Entity{{image.ID, RelImage, image.Name}},
		do: func() error {
			return p.change(func(d *Data) error {
				image.Created = p.Now()
				image.Updated = image.Created
				d.Images = append(d.Images, &image)
				return nil
			})
		},
	})
	return task, image.ID, err
}

// ImageOfDisk makes an image of the disk of a VM.
func (p *store) ImageOfDisk(i Image, diskID string) (task, id string, err error) {
	image := i
	image.ID, image.Kind = NewID(), "DISK_IMAGE"
	var size int64
	if err := p.change(func(d *Data) error {
		for _, vm := range d.VMs {
			if at := slices.IndexFunc(vm.Disks, func(o Disk) bool { return o.ID == diskID }); at >= 0 {
				size = vm.Disks[at].SizeBytes
				return nil
			}
		}
		return Missing("disk", diskID)
	}); err != nil {
		return "", "", err
	}
	task, err = p.begin(job{
		operation: "ImageCreate", description: "Create image", entities: []Entity{{image.ID, RelImage, image.Name}},
		do: func() error {
			if err := p.options.Disks.Copy(diskID, image.ID, size); err != nil {
				return err
			}
			return p.change(func(d *Data) error {
				image.Created, image.SizeBytes, image.Active = p.Now(), size, true
				image.Updated = image.Created
				d.Images = append(d.Images, &image)
				return nil
			})
		},
	})
	return task, image.ID, err
}

// WriteImage stores the contents of an image and returns when they are there.
func (p *store) WriteImage(id string, r io.Reader) error {
	if err := p.change(func(d *Data) error {
		if d.Image(id) == nil {
			return Missing("image", id)
		}
		return nil
	}); err != nil {
		return err
	}
	size, sum, err := p.options.Disks.Write(id, r)
	if err != nil {
		return err
	}
	return p.change(func(d *Data) error {
		i := d.Image(id)
		if i == nil {
			return Missing("image", id)
		}
		i.SizeBytes, i.SHA256, i.Active, i.Updated = size, sum, true, p.Now()
		i.Version++
		return nil
	})
}

// imageName returns the name of an image that has the version of the caller.
func (p *store) imageName(id string, match int) (name string, err error) {
	err = p.change(func(d *Data) error {
		i := d.Image(id)
		if i == nil {
			return Missing("image", id)
		}
		name = i.Name
		return checkVersion(i.Version, match)
	})
	return name, err
}

// UpdateImage changes what describes an image.
func (p *store) UpdateImage(id string, match int, change func(i *Image)) (string, error) {
	name, err := p.imageName(id, match)
	if err != nil {
		return "", err
	}
	return p.begin(job{
		operation: "ImageUpdate", description: "Update image", entities: []Entity{{id, RelImage, name}},
		do: func() error {
			return p.change(func(d *Data) error {
				i := d.Image(id)
				if i == nil {
					return Missing("image", id)
				}
				change(i)
				i.Updated = p.Now()
				i.Version++
				return nil
			})
		},
	})
}

// DeleteImage removes an image; disks that were made of it stay.
func (p *store) DeleteImage(id string, match int) (string, error) {
	name, err := p.imageName(id, match)
	if err != nil {
		return "", err
	}
	return p.begin(job{
		operation: "ImageDelete", description: "Delete image", entities: []Entity{{id, RelImage, name}},
		do: func() error {
			_ = p.change(func(d *Data) error {
				d.Images = slices.DeleteFunc(d.Images, func(i *Image) bool { return i.ID == id })
				return nil
			})
			return p.options.Disks.Remove(id)
		},
	})
}

// CreateContainer makes a storage container.
func (p *store) CreateContainer(c Container) (task, id string, err error) {
	c.ID = NewID()
	if err := p.change(func(d *Data) error {
		if slices.ContainsFunc(d.Containers, func(o *Container) bool { return named(o.Name, c.Name) }) {
			return refuse(Busy, "a storage container named %s exists", c.Name)
		}
		c.Settings.fill(len(d.Hosts))
		put(&c.MaxCapacityBytes, d.Cluster.CapacityBytes)
		return c.check(len(d.Hosts))
	}); err != nil {
		return "", "", err
	}
	task, err = p.begin(job{
		operation: "CreateStorageContainer", description: "Create storage container", entities: []Entity{{c.ID, RelContainer, c.Name}},
		do: func() error {
			return p.change(func(d *Data) error {
				d.Containers = append(d.Containers, &c)
				return nil
			})
		},
	})
	return task, c.ID, err
}

func (s *Settings) fill(hosts int) {
	put(&s.ReplicationFactor, min(2, hosts))
	put(&s.ErasureCode, "OFF")
	put(&s.OnDiskDedup, "OFF")
	put(&s.CacheDedup, "OFF")
}

func (c *Container) check(hosts int) error {
	s := c.Settings
	switch {
	case c.Name == "":
		return Invalidf("name: required")
	case s.ReplicationFactor < 1 || s.ReplicationFactor > 3:
		return Invalidf("replicationFactor: %d, want 1 to 3", s.ReplicationFactor)
	case s.ReplicationFactor == 3 && hosts < 5:
		return Invalidf("replicationFactor: 3 needs 5 hosts, the cluster has %d", hosts)
	case s.ErasureCode == "ON" && hosts < 2*s.ReplicationFactor:
		return Invalidf("erasureCode: needs %d hosts at replication factor %d, the cluster has %d", 2*s.ReplicationFactor, s.ReplicationFactor, hosts)
	case s.CompressionDelaySecs < 0 || s.ErasureCodeDelaySecs < 0:
		return Invalidf("delays: want 0 or more seconds")
	}
	return nil
}

// UpdateContainer changes the settings of a storage container.
func (p *store) UpdateContainer(id string, match int, change func(c *Container)) (string, error) {
	var next Container
	if err := p.change(func(d *Data) error {
		c := d.Container(id)
		if c == nil {
			return Missing("storage container", id)
		}
		next = *c
		change(&next)
		if err := checkVersion(c.Version, match); err != nil {
			return err
		}
		return next.check(len(d.Hosts))
	}); err != nil {
		return "", err
	}
	return p.begin(job{
		operation: "UpdateStorageContainer", description: "Update storage container", entities: []Entity{{id, RelContainer, next.Name}},
		do: func() error {
			return p.change(func(d *Data) error {
				c := d.Container(id)
				if c == nil {
					return Missing("storage container", id)
				}
				change(c)
				c.Version++
				return nil
			})
		},
	})
}

// DeleteContainer removes an empty storage container.
func (p *store) DeleteContainer(id string) (string, error) {
	var name string
	if err := p.change(func(d *Data) error {
		c := d.Container(id)
		if c == nil {
			return Missing("storage container", id)
		}
		name = c.Name
		for _, vm := range d.VMs {
			if slices.ContainsFunc(vm.Disks, func(o Disk) bool { return o.ContainerID == id }) {
				return refuse(Busy, "storage container %s has disks of VM %s", c.Name, vm.Name)
			}
		}
		return nil
	}); err != nil {
		return "", err
	}
	return p.begin(job{
		operation: "DeleteStorageContainer", description: "Delete storage container", entities: []Entity{{id, RelContainer, name}},
		do: func() error {
			return p.change(func(d *Data) error {
				d.Containers = slices.DeleteFunc(d.Containers, func(c *Container) bool { return c.ID == id })
				return nil
			})
		},
	})
}

// CreateCategory makes a category at once.
func (p *store) CreateCategory(c Category) (Category, error) {
	c.ID = NewID()
	err := p.change(func(d *Data) error {
		if c.Key == "" || c.Value == "" {
			return Invalidf("key and value: required")
		}
		if slices.ContainsFunc(d.Categories, func(o *Category) bool { return o.Key == c.Key && o.Value == c.Value }) {
			return refuse(Busy, "category %s:%s exists", c.Key, c.Value)
		}
		kept := c
		d.Categories = append(d.Categories, &kept)
		return nil
	})
	return c, err
}

// UpdateCategory changes the description of a category. match is the version that the caller knows; below 0: any.
func (p *store) UpdateCategory(id, description string, match int) error {
	return p.change(func(d *Data) error {
		c := d.Category(id)
		switch {
		case c == nil:
			return Missing("category", id)
		case match >= 0 && match != c.Version:
			return refuse(Stale, "category %s has changed", id)
		}
		c.Description = description
		c.Version++
		return nil
	})
}

// DeleteCategory removes a category that no VM has.
func (p *store) DeleteCategory(id string) error {
	return p.change(func(d *Data) error {
		c := d.Category(id)
		if c == nil {
			return Missing("category", id)
		}
		if i := slices.IndexFunc(d.VMs, func(vm *VM) bool { return slices.Contains(vm.Categories, id) }); i >= 0 {
			return refuse(Busy, "category %s:%s is assigned to VM %s", c.Key, c.Value, d.VMs[i].Name)
		}
		d.Categories = slices.DeleteFunc(d.Categories, func(o *Category) bool { return o == c })
		return nil
	})
}

// FailImage begins to make an image, and fails.
func (p *store) FailImage(i Image, reason string) (string, error) {
	return p.begin(job{
		operation: "ImageCreate", description: "Create image", entities: []Entity{{NewID(), RelImage, i.Name}},
		do: func() error { return Invalidf("%s", reason) },
	})
}

// objectID is where the contents of an uploaded object are.
func objectID(key string) string { return "object-" + key }

// WriteObject stores what images can be made of, by a key.
func (p *store) WriteObject(key string, r io.Reader) error {
	_, _, err := p.options.Disks.Write(objectID(key), r)
	return err
}

// ImageOfObject makes an image of an object.
func (p *store) ImageOfObject(i Image, key string) (task, id string, err error) {
	image := i
	image.ID = NewID()
	put(&image.Kind, "DISK_IMAGE")
	task, err = p.begin(job{
		operation: "ImageCreate", description: "Create image", entities: []Entity{{image.ID, RelImage, image.Name}},
		do: func() error {
			f, err := os.Open(p.options.Disks.Path(objectID(key)))
			if err != nil {
				return Missing("object", key)
			}
			defer f.Close()
			if image.SizeBytes, image.SHA256, err = p.options.Disks.Write(image.ID, f); err != nil {
				return err
			}
			return p.change(func(d *Data) error {
				image.Created, image.Active = p.Now(), true
				image.Updated = image.Created
				d.Images = append(d.Images, &image)
				return nil
			})
		},
	})
	return task, image.ID, err
}

// UploadImage is WriteImage with a task, which ends when it has become active.
func (p *store) UploadImage(id string, r io.Reader) (string, error) {
	if err := p.WriteImage(id, r); err != nil {
		return "", err
	}
	return p.begin(job{operation: "ImageUpload", description: "Upload image", entities: []Entity{{id, RelImage, ""}}, do: func() error { return nil }})
}

// CategoriesOf finds categories by their keys and values.
func (p *store) CategoriesOf(pairs map[string]string) (ids []string, err error) {
	for key, value := range pairs {
		err := p.change(func(d *Data) error {
			i := slices.IndexFunc(d.Categories, func(c *Category) bool { return c.Key == key && c.Value == value })
			if i < 0 {
				return Missing("category", key+":"+value)
			}
			ids = append(ids, d.Categories[i].ID)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(ids)
	return ids, nil
}
