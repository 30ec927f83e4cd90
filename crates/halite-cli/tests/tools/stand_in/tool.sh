#!/bin/sh
# Stands in for `iree-compile` and `iree-import-onnx` in tests, which run it through a link in a folder that is named
# after the release it claims to be of. Its result is the file INPUT.result, without which it fails; it notes its flags
# in OUTPUT.flags.
if [ "$1" = --version ]; then
  echo 'IREE (https://iree.dev):'
  case $0 in
    */none/*) ;;
    *) echo "  IREE compiler version $(basename "$(dirname "$0")")rc20261016 @ 89ece87b8985" ;;
  esac
  echo '  LLVM version 24.0.0git'
  exit 0
fi
input=$1
shift
flags=
while [ $# -gt 0 ]; do
  case $1 in
    -o) output=$2; shift ;;
    *) flags="$flags$1
" ;;
  esac
  shift
done
if [ ! -e "$input.result" ]; then
  echo "$input:3:8: warning: this is a test" >&2
  echo "$input:3:8: error: 'util.initializer' op failed to inline into combined initializer" >&2
  echo "$input:3:8: note: see current operation: module { the whole program }" >&2
  exit 1
fi
cp "$input.result" "$output" && printf %s "$flags" >"$output.flags"
