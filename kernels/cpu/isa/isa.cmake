# Each source here is compiled once per instruction set, in namespace GW_ISA. These sources include
# no header with inline functions of external linkage: the linker keeps one copy of such a function,
# and it must not be one that the machine cannot run.
file(GLOB isa_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.cc)
set(isa_flags -O3 -fno-trapping-math -Wno-maybe-uninitialized)
set(isa_flags_avx2 -march=x86-64-v3)
set(isa_flags_avx512 -march=x86-64-v4 -mprefer-vector-width=512)
foreach(isa avx2 avx512)
  foreach(source ${isa_sources})
    get_filename_component(name ${source} NAME_WE)
    set(wrapper ${CMAKE_CURRENT_BINARY_DIR}/isa/${name}_${isa}.cc)
    file(CONFIGURE OUTPUT ${wrapper} CONTENT "#define GW_ISA ${isa}\n#include \"${source}\"\n")
    set_source_files_properties(${wrapper} PROPERTIES
      COMPILE_OPTIONS "${isa_flags};${isa_flags_${isa}}")
    target_sources(gradwire_kernels PRIVATE ${wrapper})
  endforeach()
endforeach()
