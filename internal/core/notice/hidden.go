package notice

// Hidden is a value that must not be shown: a webhook's URL, a token, a key. It prints as a
// placeholder; string(h) is the value.
type Hidden string

const placeholder = "(hidden)"

// String implements fmt.Stringer.
func (Hidden) String() string { return placeholder }

// GoString implements fmt.GoStringer.
func (Hidden) GoString() string { return placeholder }

// MarshalText implements encoding.TextMarshaler, which JSON and logs use.
func (Hidden) MarshalText() ([]byte, error) { return []byte(placeholder), nil }
