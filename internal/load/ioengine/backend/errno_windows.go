package backend

// What represents an error without a number of its own: ERROR_GEN_FAILURE.
const errnoOther = int32(31)

// What represents an operation that is not offered here: ERROR_NOT_SUPPORTED.
const errnoUnsupported = int32(50)

// errnoName names the system's errors by what other systems call the same, so that a result reads alike everywhere.
func errnoName(class int) string { return windowsErrors[class] }

// windowsErrors are numbers of winerror.h.
var windowsErrors = map[int]string{
	2: "ENOENT", 5: "EACCES", 6: "EBADF", 8: "ENOMEM", 19: "EROFS", 21: "ENXIO", 23: "EIO", 29: "EIO", 30: "EIO", 31: "EIO",
	32: "EBUSY", 33: "EBUSY", 39: "ENOSPC", 50: "EOPNOTSUPP", 55: "ENODEV", 87: "EINVAL", 112: "ENOSPC", 121: "ETIMEDOUT", 170: "EBUSY",
}
