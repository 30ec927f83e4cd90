// Loops around single operations, to measure what one of them costs.

vm.module @micro {
  vm.import private @bench.nothing()
  vm.import private @hal_inline.buffer.allocate(%alignment : i32, %length : i64) -> (!vm.ref<!hal.buffer>, !vm.buffer)
  vm.import private @hal_loader.executable.load(%format : !vm.buffer, %data : !vm.buffer, %constants : !vm.buffer)
      -> !vm.ref<!hal.executable>
  vm.import private @hal_loader.executable.lookup.function(%executable : !vm.ref<!hal.executable>, %name : !vm.buffer)
      -> i64
  vm.import private @hal_loader.executable.dispatch(%executable : !vm.ref<!hal.executable>, %function : i64,
      %x : i32, %y : i32, %z : i32, %constants : i32 ..., %bindings : tuple<!vm.buffer, i64, i64> ...)

  // What the loops need.
  vm.export @load
  vm.func private @load(%format: !vm.buffer, %data: !vm.buffer) -> !vm.ref<!hal.executable> {
    %none = vm.const.ref.zero : !vm.buffer
    %executable = vm.call @hal_loader.executable.load(%format, %data, %none)
        : (!vm.buffer, !vm.buffer, !vm.buffer) -> !vm.ref<!hal.executable>
    vm.return %executable : !vm.ref<!hal.executable>
  }

  // The smallest function.
  vm.export @empty
  vm.func private @empty() {
    vm.return
  }

  vm.func private @leaf() attributes {inlining_policy = #util.inline.never} {
    vm.return
  }

  // Nothing but the loop.
  vm.export @count
  vm.func private @count(%n: i32) {
    %zero = vm.const.i32 0
    %one = vm.const.i32 1
    vm.br ^head(%zero : i32)
  ^head(%i: i32):
    %more = vm.cmp.lt.i32.s %i, %n : i32
    vm.cond_br %more, ^body, ^done
  ^body:
    %next = vm.add.i32 %i, %one : i32
    vm.br ^head(%next : i32)
  ^done:
    vm.return
  }

  // A call within the module.
  vm.export @call_internal
  vm.func private @call_internal(%n: i32) {
    %zero = vm.const.i32 0
    %one = vm.const.i32 1
    vm.br ^head(%zero : i32)
  ^head(%i: i32):
    %more = vm.cmp.lt.i32.s %i, %n : i32
    vm.cond_br %more, ^body, ^done
  ^body:
    vm.call @leaf() : () -> ()
    %next = vm.add.i32 %i, %one : i32
    vm.br ^head(%next : i32)
  ^done:
    vm.return
  }

  // A call of a native function.
  vm.export @call_import
  vm.func private @call_import(%n: i32) {
    %zero = vm.const.i32 0
    %one = vm.const.i32 1
    vm.br ^head(%zero : i32)
  ^head(%i: i32):
    %more = vm.cmp.lt.i32.s %i, %n : i32
    vm.cond_br %more, ^body, ^done
  ^body:
    vm.call @bench.nothing() : () -> ()
    %next = vm.add.i32 %i, %one : i32
    vm.br ^head(%next : i32)
  ^done:
    vm.return
  }

  // A new buffer of 256 bytes.
  vm.export @allocate
  vm.func private @allocate(%n: i32) {
    %zero = vm.const.i32 0
    %one = vm.const.i32 1
    %alignment = vm.const.i32 64
    %length = vm.const.i64 256
    vm.br ^head(%zero : i32)
  ^head(%i: i32):
    %more = vm.cmp.lt.i32.s %i, %n : i32
    vm.cond_br %more, ^body, ^done
  ^body:
    %buffer, %storage = vm.call @hal_inline.buffer.allocate(%alignment, %length)
        : (i32, i64) -> (!vm.ref<!hal.buffer>, !vm.buffer)
    %next = vm.add.i32 %i, %one : i32
    vm.br ^head(%next : i32)
  ^done:
    vm.return
  }

  // A function of an executable by its name, as programs look it up: by a constant.
  vm.rodata private @lookup_name "c0_b3"
  vm.export @lookup
  vm.func private @lookup(%n: i32, %executable: !vm.ref<!hal.executable>) {
    %zero = vm.const.i32 0
    %one = vm.const.i32 1
    vm.br ^head(%zero : i32)
  ^head(%i: i32):
    %more = vm.cmp.lt.i32.s %i, %n : i32
    vm.cond_br %more, ^body, ^done
  ^body:
    %name = vm.const.ref.rodata @lookup_name : !vm.buffer
    %function = vm.call @hal_loader.executable.lookup.function(%executable, %name)
        : (!vm.ref<!hal.executable>, !vm.buffer) -> i64
    %next = vm.add.i32 %i, %one : i32
    vm.br ^head(%next : i32)
  ^done:
    vm.return
  }

  // The same in an executable of many functions.
  vm.rodata private @lookup_of_many_name "main_dispatch_1023_elementwise_4_f32"
  vm.export @lookup_of_many
  vm.func private @lookup_of_many(%n: i32, %executable: !vm.ref<!hal.executable>) {
    %zero = vm.const.i32 0
    %one = vm.const.i32 1
    vm.br ^head(%zero : i32)
  ^head(%i: i32):
    %more = vm.cmp.lt.i32.s %i, %n : i32
    vm.cond_br %more, ^body, ^done
  ^body:
    %name = vm.const.ref.rodata @lookup_of_many_name : !vm.buffer
    %function = vm.call @hal_loader.executable.lookup.function(%executable, %name)
        : (!vm.ref<!hal.executable>, !vm.buffer) -> i64
    %next = vm.add.i32 %i, %one : i32
    vm.br ^head(%next : i32)
  ^done:
    vm.return
  }

  // A dispatch with 0 constants and 0 bindings.
  vm.export @dispatch_c0_b0
  vm.func private @dispatch_c0_b0(%n: i32, %executable: !vm.ref<!hal.executable>, %function: i64, %x: i32, %memory: !vm.buffer) {
    %zero = vm.const.i32 0
    %one = vm.const.i32 1
    %offset = vm.const.i64 0
    %length = vm.const.i64 64
    vm.br ^head(%zero : i32)
  ^head(%i: i32):
    %more = vm.cmp.lt.i32.s %i, %n : i32
    vm.cond_br %more, ^body, ^done
  ^body:
    vm.call.variadic @hal_loader.executable.dispatch(%executable, %function, %x, %one, %one, [], [])
        : (!vm.ref<!hal.executable>, i64, i32, i32, i32, i32 ..., tuple<!vm.buffer, i64, i64> ...)
    %next = vm.add.i32 %i, %one : i32
    vm.br ^head(%next : i32)
  ^done:
    vm.return
  }

  // A dispatch with 0 constants and 3 bindings.
  vm.export @dispatch_c0_b3
  vm.func private @dispatch_c0_b3(%n: i32, %executable: !vm.ref<!hal.executable>, %function: i64, %x: i32, %memory: !vm.buffer) {
    %zero = vm.const.i32 0
    %one = vm.const.i32 1
    %offset = vm.const.i64 0
    %length = vm.const.i64 64
    vm.br ^head(%zero : i32)
  ^head(%i: i32):
    %more = vm.cmp.lt.i32.s %i, %n : i32
    vm.cond_br %more, ^body, ^done
  ^body:
    vm.call.variadic @hal_loader.executable.dispatch(%executable, %function, %x, %one, %one, [], [(%memory, %offset, %length), (%memory, %offset, %length), (%memory, %offset, %length)])
        : (!vm.ref<!hal.executable>, i64, i32, i32, i32, i32 ..., tuple<!vm.buffer, i64, i64> ...)
    %next = vm.add.i32 %i, %one : i32
    vm.br ^head(%next : i32)
  ^done:
    vm.return
  }

  // A dispatch with 0 constants and 16 bindings.
  vm.export @dispatch_c0_b16
  vm.func private @dispatch_c0_b16(%n: i32, %executable: !vm.ref<!hal.executable>, %function: i64, %x: i32, %memory: !vm.buffer) {
    %zero = vm.const.i32 0
    %one = vm.const.i32 1
    %offset = vm.const.i64 0
    %length = vm.const.i64 64
    vm.br ^head(%zero : i32)
  ^head(%i: i32):
    %more = vm.cmp.lt.i32.s %i, %n : i32
    vm.cond_br %more, ^body, ^done
  ^body:
    vm.call.variadic @hal_loader.executable.dispatch(%executable, %function, %x, %one, %one, [], [(%memory, %offset, %length), (%memory, %offset, %length), (%memory, %offset, %length), (%memory, %offset, %length), (%memory, %offset, %length), (%memory, %offset, %length), (%memory, %offset, %length), (%memory, %offset, %length), (%memory, %offset, %length), (%memory, %offset, %length), (%memory, %offset, %length), (%memory, %offset, %length), (%memory, %offset, %length), (%memory, %offset, %length), (%memory, %offset, %length), (%memory, %offset, %length)])
        : (!vm.ref<!hal.executable>, i64, i32, i32, i32, i32 ..., tuple<!vm.buffer, i64, i64> ...)
    %next = vm.add.i32 %i, %one : i32
    vm.br ^head(%next : i32)
  ^done:
    vm.return
  }

  // A dispatch with 16 constants and 3 bindings.
  vm.export @dispatch_c16_b3
  vm.func private @dispatch_c16_b3(%n: i32, %executable: !vm.ref<!hal.executable>, %function: i64, %x: i32, %memory: !vm.buffer) {
    %zero = vm.const.i32 0
    %one = vm.const.i32 1
    %offset = vm.const.i64 0
    %length = vm.const.i64 64
    vm.br ^head(%zero : i32)
  ^head(%i: i32):
    %more = vm.cmp.lt.i32.s %i, %n : i32
    vm.cond_br %more, ^body, ^done
  ^body:
    vm.call.variadic @hal_loader.executable.dispatch(%executable, %function, %x, %one, %one, [%one, %one, %one, %one, %one, %one, %one, %one, %one, %one, %one, %one, %one, %one, %one, %one], [(%memory, %offset, %length), (%memory, %offset, %length), (%memory, %offset, %length)])
        : (!vm.ref<!hal.executable>, i64, i32, i32, i32, i32 ..., tuple<!vm.buffer, i64, i64> ...)
    %next = vm.add.i32 %i, %one : i32
    vm.br ^head(%next : i32)
  ^done:
    vm.return
  }
}
